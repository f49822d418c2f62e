#include "engine/text/grammar_rules.h"

#include <algorithm>
#include <format>

namespace molly::engine {
namespace {

struct StandardRule {
  std::string_view name;
  std::string_view body;
  std::vector<std::string_view> needs;
};

// Every text that these allow is well-formed: no half surrogate pairs, no 31 February, no number that overflows.
const std::vector<StandardRule>& standard_rules() {
  static const std::vector<StandardRule> rules = {
      {"ws", R"((" " | "\n" [ \t]{0,20})?)", {}},
      {"value",
       "object | array | string | number | boolean | null",
       {"object", "array", "string", "number", "boolean", "null"}},
      {"object",
       R"("{" ws (string ws ":" ws value (ws "," ws string ws ":" ws value)* ws)? "}")",
       {"ws", "string", "value"}},
      {"array", R"("[" ws (value (ws "," ws value)* ws)? "]")", {"ws", "value"}},
      {"string", R"("\"" char* "\"")", {"char"}},
      {"char",
       R"([\x20-\x21\x23-\x5B\x5D-\x7E\u0080-\uD7FF\uE000-\U0010FFFF] | "\\" (["\\/bfnrt] | "u" utf16))",
       {"utf16"}},
      {"utf16",
       R"([0-9a-cA-CefEF] hex{3} | [dD] [0-7] hex{2} | [dD] [89abAB] hex{2} "\\u" [dD] [c-fC-F] hex{2})",
       {"hex"}},
      {"hex", "[0-9a-fA-F]", {}},
      {"number", R"(integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?)", {"integer"}},
      {"integer", R"("-"? ("0" | [1-9] [0-9]{0,15}))", {}},
      {"boolean", R"("true" | "false")", {}},
      {"null", R"("null")", {}},
      {"date",
       R"([0-9]{4} "-" (("0" [13578] | "1" [02]) "-" (day | "29" | "30" | "31") | ("0" [469] | "11") "-" (day | "29" | "30") | "02-" day))",
       {"day"}},
      {"day", R"("0" [1-9] | "1" [0-9] | "2" [0-8])", {}},
      {"time", R"(clock ":" [0-5] [0-9] ("." [0-9]{1,9})? ("Z" | [-+] clock))", {"clock"}},
      {"clock", R"(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])", {}},
      {"date-time", R"(date "T" time)", {"date", "time"}},
      {"duration", R"("P" ([0-9]{1,4} [YMWD] | ([0-9]{1,4} "D")? "T" [0-9]{1,4} [HMS]))", {}},
      {"uuid", R"(hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12})", {"hex"}},
      {"hostname", R"(host-label ("." host-label){0,2})", {"host-label"}},
      {"host-label", R"([a-zA-Z0-9] ([a-zA-Z0-9-]{0,61} [a-zA-Z0-9])?)", {}},
      {"email", R"([a-zA-Z0-9]{1,20} ([._+-] [a-zA-Z0-9]{1,20}){0,2} "@" hostname)", {"hostname"}},
      {"ipv4", R"(octet "." octet "." octet "." octet)", {"octet"}},
      {"octet", R"([0-9] | [1-9] [0-9] | "1" [0-9]{2} | "2" [0-4] [0-9] | "25" [0-5])", {}},
      {"ipv6", R"(hex{1,4} (":" hex{1,4}){7})", {"hex"}},
      {"uri", R"("http" "s"? "://" hostname ("/" [a-zA-Z0-9._~-]{0,40}){0,8})", {"hostname"}},
  };
  return rules;
}

constexpr std::uint64_t chunk = 64;
constexpr std::uint64_t most_repetitions = 65'536;
constexpr std::uint64_t plain_repetitions = 1000;  // that llama.cpp expands without complaint

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

std::string rule_name(std::string_view wish) {
  std::string name;
  for (const char c : wish.substr(0, 60)) name += is_name_character(c) ? c : '-';
  return name;
}

std::string suffix(Times times) {
  if (times.least == 0 && times.most == 1) return "?";
  if (!times.most && times.least <= 1) return times.least == 0 ? "*" : "+";
  if (times.most == times.least) return std::format("{{{}}}", times.least);
  return std::format("{{{},{}}}", times.least, times.most ? std::to_string(*times.most) : "");
}

std::string part(const std::string& item, Times times) { return times.most == 0 ? "" : " " + item + suffix(times); }

// `whole` is a chunk of items. Whole chunks come before single items, so that no text can be read in two ways.
std::string long_repetition(const std::string& item, const std::string& whole, Times times) {
  const auto exactly = [](const std::string& symbol, std::uint64_t count) { return part(symbol, {count, count}); };
  const std::string needed = exactly(whole, times.least / chunk) + exactly(item, times.least % chunk);
  if (!times.most) return "(" + needed + part(item, {}) + ")";
  const std::uint64_t chunks = (*times.most - times.least) / chunk;
  const std::uint64_t rest = (*times.most - times.least) % chunk;
  if (chunks == 0) return "(" + needed + part(item, {0, rest}) + ")";
  const std::string fewer = part(whole, {0, chunks - 1}) + part(item, {0, chunk - 1});
  return "(" + needed + " (" + fewer + " |" + exactly(whole, chunks) + part(item, {0, rest}) + "))";
}

}  // namespace

std::string GrammarRules::reserve(std::string_view wish) {
  const std::string base = rule_name(wish);
  const auto taken = [&](const std::string& name) {
    return bodies_.contains(name) || std::ranges::contains(standard_rules(), name, &StandardRule::name);
  };
  std::string name = base;
  while (taken(name)) name = std::format("{}-{}", base, ++last_number_[base]);
  order_.push_back(name);
  bodies_[name];
  bytes_ += name.size();
  return name;
}

std::string GrammarRules::add(std::string_view wish, std::string body) {
  std::string name = reserve(wish);
  bytes_ += body.size();
  define(name, std::move(body));
  return name;
}

std::optional<std::string> GrammarRules::standard(std::string_view name) {
  const auto rule = std::ranges::find(standard_rules(), name, &StandardRule::name);
  if (rule == standard_rules().end()) return std::nullopt;
  if (bodies_.contains(name)) return std::string(name);
  order_.emplace_back(name);
  bodies_[std::string(name)] = rule->body;
  bytes_ += rule->body.size();
  for (const std::string_view needed : rule->needs) standard(needed);
  return std::string(name);
}

std::string GrammarRules::text() const {
  std::string text;
  for (const std::string& name : order_) {
    const std::string line = name + " ::= " + bodies_.at(name) + "\n";
    text = name == "root" ? line + text : text + line;
  }
  return text;
}

std::string grammar_literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': literal += "\\\""; break;
      case '\\': literal += "\\\\"; break;
      case '\n': literal += "\\n"; break;
      case '\r': literal += "\\r"; break;
      case '\t': literal += "\\t"; break;
      default:
        const auto byte = static_cast<unsigned char>(c);
        literal += byte < 0x20 || byte == 0x7f ? std::format("\\x{:02X}", byte) : std::string(1, c);
    }
  }
  return literal + '"';
}

std::string repeated(GrammarRules& rules, const std::string& item, Times times) {
  if (times.most) times.most = std::min(*times.most, std::max(times.least, most_repetitions));
  if (times.most == 0) return "\"\"";
  if (times.least == 1 && times.most == 1) return item;
  if (times.most.value_or(times.least) <= plain_repetitions) return item + suffix(times);
  return long_repetition(item, rules.add("repeated", item + suffix({chunk, chunk})), times);
}

}  // namespace molly::engine
