// Any text gives a grammar or a typed error; a grammar has a root and no rule that is missing.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "engine/text/json_schema.h"

namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

// Passes over a literal or a class, whose letters are no names.
std::size_t end_of_quoted(std::string_view body, std::size_t at) {
  const char closing = body[at] == '"' ? '"' : body[at] == '[' ? ']' : '}';
  for (++at; at < body.size() && body[at] != closing; ++at) {
    if (body[at] == '\\') ++at;
  }
  return at + 1;
}

std::set<std::string, std::less<>> names_in(std::string_view body) {
  std::set<std::string, std::less<>> names;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] == '"' || body[at] == '[' || body[at] == '{') {
      at = end_of_quoted(body, at);
    } else if (is_name_character(body[at])) {
      std::size_t end = at;
      while (end < body.size() && is_name_character(body[end])) ++end;
      names.emplace(body.substr(at, end - at));
      at = end;
    } else {
      ++at;
    }
  }
  return names;
}

void expect_complete(std::string_view grammar) {
  std::set<std::string, std::less<>> defined;
  std::set<std::string, std::less<>> used;
  if (!grammar.starts_with("root ::= ")) std::abort();
  while (!grammar.empty()) {
    const std::size_t end = grammar.find('\n');
    const std::size_t name = grammar.find(" ::= ");
    if (end == std::string_view::npos || name > end) std::abort();
    if (!defined.emplace(grammar.substr(0, name)).second) std::abort();
    used.merge(names_in(grammar.substr(name + 5, end - name - 5)));
    grammar.remove_prefix(end + 1);
  }
  for (const auto& name : used) {
    if (!defined.contains(name)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto grammar = molly::engine::grammar_of_schema({reinterpret_cast<const char*>(data), size});
  if (grammar) {
    expect_complete(*grammar);
  } else if (grammar.error().message.empty()) {
    std::abort();
  }
  return 0;
}
