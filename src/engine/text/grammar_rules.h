#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace molly::engine {

// The rules of one GBNF grammar while it is made. GBNF: grammars/README.md of llama.cpp.
class GrammarRules {
 public:
  // Adds a rule under that name, or that name with a number where it is taken; which name it got.
  std::string add(std::string_view name, std::string body);
  // A name for a rule that is defined later.
  std::string reserve(std::string_view name);
  void define(const std::string& name, std::string body) { bodies_[name] = std::move(body); }
  // The name of a rule of JSON (value, object, array, string, char, number, integer, boolean, null, ws) or of a string
  // format without its quotes (date, time, ...), with the rules it needs. Nothing for a name that is neither.
  std::optional<std::string> standard(std::string_view name);
  std::string json(std::string_view name) { return standard(name).value(); }

  std::size_t bytes() const { return bytes_; }
  // "root" first, then each rule as it came.
  std::string text() const;

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string, std::less<>> bodies_;
  std::map<std::string, std::size_t> last_number_;  // behind a name that is taken
  std::size_t bytes_ = 0;
};

struct Times {
  std::uint64_t least = 0;
  std::optional<std::uint64_t> most;
};

// `text` as a GBNF literal, quotes included.
std::string grammar_literal(std::string_view text);

// `item`, one GBNF symbol or group, so many times; very long repetitions go through rules of their own, as llama.cpp
// refuses them otherwise. An upper bound beyond 65,536 becomes that.
std::string repeated(GrammarRules& rules, const std::string& item, Times times);

}  // namespace molly::engine
