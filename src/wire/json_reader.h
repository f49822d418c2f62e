#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/json.h"

namespace molly::wire {

// Strict pull parser over one JSON text (RFC 8259): valid UTF-8, no half surrogate pairs, at most 64 levels, nothing
// after the value. It knows where it is, so an error names the member at fault: "messages[2].content[0].type".
//
// The first failure sticks: from then on reads give empty values and loops end, so callers check once, at the end.
// The text must outlive the reader. Why not glaze here: members without a type must survive in order and spelling,
// duplicates must be refused, and errors must name a path.
class JsonReader {
 public:
  static constexpr std::size_t max_depth = 64;
  enum class Kind : std::uint8_t { object, array, string, number, boolean, null, none };

  explicit JsonReader(std::string_view text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // What the next value looks like by its first character.
  Kind peek();

  // Calls visit(key) for every member; it must read the member's value. The key lives as long as the reader.
  template <class Visit>
  void object(Visit&& visit) {
    if (!open('{', "must be an object")) return;
    while (const std::optional<std::string_view> key = next_key()) visit(*key);
  }

  // Calls visit(index) for every element; it must read the element.
  template <class Visit>
  void array(Visit&& visit) {
    if (!open('[', "must be a list")) return;
    while (const std::optional<std::uint32_t> index = next_index()) visit(*index);
  }

  std::string string();
  bool boolean();
  Number number();
  // A whole number spelled without sign, fraction or exponent, at most `most`.
  std::uint64_t unsigned_integer(std::uint64_t most = UINT64_MAX);
  std::int64_t integer();

  // The next value as it is spelled, checked and passed over.
  std::string_view raw();
  RawJson raw_json() { return RawJson{std::string(raw())}; }
  void skip() { raw(); }

  // The string member `name` of the object that comes next, without passing over the object.
  std::optional<std::string> peek_string_member(std::string_view name);
  // Whether the next value is null, and whether it is "", [] or {}.
  bool at_null() { return peek() == Kind::null; }
  bool at_empty();

  // A place to come back to; only within the object or list that is open now.
  struct Mark {
    const char* at;
    std::size_t depth;
  };
  Mark mark() const { return {at_, depth_}; }
  void rewind(Mark mark);

  // Refuses the value that is being read, or one member of it: `what` completes a sentence, as in "must be a string".
  void fail(std::string_view what);
  void fail_member(std::string_view name, std::string_view what);
  bool ok() const { return !failed_; }

  // To be called after the last read.
  void expect_end();

  // Where and what the failure was; empty strings while ok().
  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    std::string_view key;     // of the member being read, in an object
    std::uint32_t count = 0;  // members or elements begun
    bool is_array = false;
  };
  struct StringToken {
    std::string_view body;  // between the quotes
    bool escaped = false;
  };

  bool open(char bracket, std::string_view otherwise);
  std::optional<std::string_view> next_key();
  std::optional<std::uint32_t> next_index();
  bool next_item(char closing);
  void close();

  void skip_space();
  bool take(char expected);
  bool take_word(std::string_view word);
  StringToken string_token();
  bool check_escape();
  bool check_utf8();
  std::uint32_t hex4(const char* at) const;
  std::string_view number_token();
  void pass_value();
  void pass_object();
  void pass_array();
  void syntax_error();

  const char* begin_;
  const char* at_;
  const char* end_;
  std::array<Level, max_depth + 1> levels_;
  std::size_t depth_ = 0;
  bool failed_ = false;
  std::string path_;
  std::string problem_;
  std::forward_list<std::string> decoded_keys_;
};

// The body of a JSON string without its quotes, checked before: escapes resolved.
std::string unescape_json(std::string_view body);

}  // namespace molly::wire
