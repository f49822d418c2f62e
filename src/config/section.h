#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "core/error.h"

namespace molly::config {

// One thing wrong with a configuration file. Never holds a secret's value.
struct Problem {
  std::string file;
  std::uint32_t line = 0;    // from 1; 0: no place in the file
  std::uint32_t column = 0;  // from 1
  std::string key;           // dotted path, e.g. "target[2].tier"
  std::string sentence;

  // "molly.toml:14:3: target[2].tier: ...".
  std::string text() const;
};

template <class Value>
struct Range {
  Value least;
  Value most;
};

inline constexpr Range<std::int64_t> any_integer{0, std::numeric_limits<std::int64_t>::max()};
inline constexpr Range<double> any_number{std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
inline constexpr Range<std::chrono::milliseconds> any_duration{std::chrono::milliseconds(1), std::chrono::days(366)};
inline constexpr Range<std::uint64_t> any_bytes{1, std::numeric_limits<std::int64_t>::max()};

namespace detail {
struct State;
struct Table;
}  // namespace detail

// One table of the file, read key by key. A getter returns nothing where the key is absent, and also
// where its value is wrong: then the document has one problem more, and reading goes on so that a person
// sees all mistakes at once. Every key that was asked for counts as known; finish() reports the others.
//
// A section whose table is absent is an ordinary empty section. Sections are cheap to copy and keep their
// document alive. Not for use from two threads at once. secret() reads the environment or a file and may
// block on the disk; nothing else blocks.
class Section {
 public:
  std::optional<std::string> text(std::string_view key);
  // One string of `choices`; anything else is a problem that lists them and names the nearest.
  std::optional<std::string> choice(std::string_view key, std::span<const std::string_view> choices);
  // A list of strings; a single string counts as a list of one.
  std::optional<std::vector<std::string>> texts(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, Range<std::int64_t> range = any_integer);
  std::optional<double> number(std::string_view key, Range<double> range = any_number);
  std::optional<bool> boolean(std::string_view key);
  // "500ms", "30s", "10m", "2h", "7d"; a bare number (of seconds) only where the key ends in "_seconds".
  std::optional<std::chrono::milliseconds> duration(std::string_view key,
                                                    Range<std::chrono::milliseconds> range = any_duration);
  // A bare number of bytes, or "64KiB", "32MiB", "12GiB".
  std::optional<std::uint64_t> bytes(std::string_view key, Range<std::uint64_t> range = any_bytes);
  // A TOML date, e.g. 2027-03-01.
  std::optional<std::chrono::year_month_day> date(std::string_view key);
  // "env:NAME" or "file:PATH" (relative to the configuration file's folder), resolved here. A value that
  // is neither is refused without repeating it.
  std::optional<base::Secret> secret(std::string_view key);

  // As the getters above, for keys that must be there: an absent one is a problem.
  std::string required_text(std::string_view key);

  // [key] or key = { ... }.
  Section table(std::string_view key);
  // [[key]], in order; absent: none.
  std::vector<Section> tables(std::string_view key);

  // The keys that stand in the file, in their order: for tables with free names ([aliases]). Does not count as asking.
  std::vector<std::string> keys() const;
  bool has(std::string_view key) const;
  // The table stands in the file.
  bool exists() const;
  // Dotted path, "" for the whole document.
  const std::string& path() const;
  // Line of the key, or of the table where the key is absent; 0 without a file.
  std::uint32_t line(std::string_view key) const;

  // For what only the caller can know to be wrong: a problem at the key's place (or the table's, where the
  // key is absent). The sentence says what to do; it must not repeat a secret.
  void refuse(std::string_view key, std::string sentence);

  // Reports every key of this table, and of the tables below it, that nobody asked for.
  void finish();

 private:
  friend class Document;
  Section(std::shared_ptr<detail::State> state, std::shared_ptr<detail::Table> table)
      : state_(std::move(state)), table_(std::move(table)) {}

  std::shared_ptr<detail::State> state_;
  std::shared_ptr<detail::Table> table_;
};

// A configuration file in memory. Syntax errors and duplicate keys are problems like all others; the
// sections of a document that did not parse are empty.
class Document {
 public:
  // No file at all: every default applies.
  static Document empty();
  static Document parse(std::string_view text, std::string file_name);

  // Each call returns a view of the same table: what one reader asked for is known to all.
  Section root() const;
  const std::vector<Problem>& problems() const;
  const std::string& file() const;

  // Reports all keys that nobody asked for and returns the verdict: an error of code config_invalid whose
  // message holds one line for each problem, in the order of the file.
  Result<void> finish();

 private:
  explicit Document(std::shared_ptr<detail::State> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::State> state_;
};

}  // namespace molly::config
