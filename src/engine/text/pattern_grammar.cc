#include "engine/text/pattern_grammar.h"

#include <format>
#include <optional>
#include <vector>

#include "engine/text/code_points.h"
#include "engine/text/utf8.h"

namespace molly::engine {
namespace {

constexpr int deepest = 50;
constexpr std::uint64_t most_times = 65'536;

const CodePoints& digit_set() {
  static const CodePoints set{{'0', '9'}};
  return set;
}

const CodePoints& word_set() {
  static const CodePoints set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}

const CodePoints& space_set() {
  static const CodePoints set{{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
                              {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
  return set;
}

const CodePoints& line_ends() {
  static const CodePoints set{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return set;
}

struct Piece {
  std::string grammar;
  bool may_be_empty = false;
};

struct Escaped {
  CodePoints set;
  std::optional<char32_t> single;
};

class PatternReader {
 public:
  PatternReader(std::string_view pattern, GrammarRules& rules) : rest_(pattern), rules_(rules) {}

  Result<std::string> read() {
    const Piece whole = alternatives(0);
    if (!rest_.empty()) fail("has a ')' without a '('");
    if (!problem_.empty()) return failure(ErrorCode::invalid_request, problem_, "pattern");
    return whole.grammar;
  }

 private:
  void fail(std::string_view what) {
    if (problem_.empty()) problem_ = what;
    rest_ = {};
  }

  bool at(char c) const { return !rest_.empty() && rest_.front() == c; }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  char32_t next_character() {
    const CodePoint point = first_code_point(rest_);
    if (point.length == 0) {
      fail("is not UTF-8");
      return 0;
    }
    rest_.remove_prefix(point.length);
    return point.value;
  }

  Piece alternatives(int depth) {
    Piece result{"", false};
    bool first = true;
    do {
      const Piece one = sequence(depth);
      result.grammar += (first ? "" : " | ") + one.grammar;
      result.may_be_empty = result.may_be_empty || one.may_be_empty;
      first = false;
    } while (take("|"));
    return result;
  }

  Piece sequence(int depth) {
    const bool outermost = depth == 0;
    Piece result{"", true};
    const auto append = [&](const Piece& piece) {
      result.grammar += (result.grammar.empty() ? "" : " ") + piece.grammar;
      result.may_be_empty = result.may_be_empty && piece.may_be_empty;
    };
    const Piece anything{rules_.json("char") + "*", true};
    if (outermost && !take("^")) append(anything);
    bool open_end = outermost;
    while (!rest_.empty() && !at('|') && !at(')')) {
      if (outermost && at('$') && (rest_.size() == 1 || rest_[1] == '|')) {
        take("$");
        open_end = false;
        break;
      }
      append(repeated_term(depth));
    }
    if (open_end) append(anything);
    if (result.grammar.empty()) result.grammar = "\"\"";
    return result;
  }

  Piece repeated_term(int depth) {
    const Piece one = term(depth);
    const std::optional<Times> times = quantifier();
    if (!times) return one;
    take("?");  // lazy: the same texts
    if (at('*') || at('+') || at('?')) fail("has a quantifier behind a quantifier");
    if (one.may_be_empty && !times->most) fail("repeats without end what may be empty");
    if (times->most && *times->most < times->least) fail("has a quantifier whose bounds are the wrong way round");
    if (!problem_.empty()) return {};
    return {repeated(rules_, one.grammar, *times), one.may_be_empty || times->least == 0};
  }

  std::optional<Times> quantifier() {
    if (take("*")) return Times{0, std::nullopt};
    if (take("+")) return Times{1, std::nullopt};
    if (take("?")) return Times{0, 1};
    if (!take("{")) return std::nullopt;
    Times times;
    times.least = count();
    times.most = times.least;
    if (take(",")) times.most = at('}') ? std::nullopt : std::optional(count());
    if (!take("}")) fail("has a '{' that starts no quantifier");
    return times;
  }

  std::uint64_t count() {
    std::uint64_t value = 0;
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') fail("has a '{' that starts no quantifier");
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(rest_.front() - '0');
      rest_.remove_prefix(1);
      if (value > most_times) fail(std::format("repeats more than {} times", most_times));
    }
    return value;
  }

  Piece term(int depth) {
    if (take("(")) return group(depth + 1);
    if (take("[")) return of_set(character_class());
    if (take(".")) return of_set(line_ends().complement());
    if (at('^') || at('$')) fail("has an anchor that is not at an end of it");
    if (at('*') || at('+') || at('?') || at('{')) fail("has a quantifier with nothing before it");
    if (rest_.empty()) return {};
    if (take("\\")) return of_set(escape().set);
    const char32_t character = next_character();
    return of_set({{character, character}});
  }

  Piece of_set(const CodePoints& set) {
    std::string grammar = grammar_of_code_points(set);
    if (grammar.empty()) fail("asks for a character that no JSON text should hold");
    return {std::move(grammar), false};
  }

  Piece group(int depth) {
    if (depth > deepest) {
      fail("is nested too deeply");
      return {};
    }
    if (take("?")) {
      const bool named = take("<") && !at('=') && !at('!');
      if (named) {
        const std::size_t end = rest_.find('>');
        if (end == std::string_view::npos) fail("has a group name without an end");
        if (!rest_.empty()) rest_.remove_prefix(end + 1);
      } else if (!take(":")) {
        fail("has a look-ahead, a look-behind or flags, which are not supported");
      }
    }
    const Piece inner = alternatives(depth);
    if (!take(")")) fail("has a '(' without a ')'");
    return {"(" + inner.grammar + ")", inner.may_be_empty};
  }

  CodePoints character_class() {
    CodePoints set;
    const bool negated = take("^");
    while (!rest_.empty() && !at(']')) class_item(set);
    if (!take("]")) fail("has a '[' without a ']'");
    return negated ? set.complement() : set;
  }

  void class_item(CodePoints& set) {
    const Escaped first = class_character();
    const bool range = at('-') && rest_.size() > 1 && rest_[1] != ']';
    if (!range) return set.add(first.set);
    take("-");
    const Escaped last = class_character();
    if (!first.single || !last.single || *first.single > *last.single) return fail("has a range without order");
    set.add(*first.single, *last.single);
  }

  Escaped class_character() {
    if (take("\\")) return at('b') && take("b") ? single('\b') : escape();
    return single(next_character());
  }

  static Escaped single(char32_t value) { return {{{value, value}}, value}; }

  Escaped escape() {
    if (rest_.empty()) {
      fail("ends in a backslash");
      return {};
    }
    const char32_t letter = next_character();
    switch (letter) {
      case 'd': return {digit_set(), {}};
      case 'D': return {digit_set().complement(), {}};
      case 'w': return {word_set(), {}};
      case 'W': return {word_set().complement(), {}};
      case 's': return {space_set(), {}};
      case 'S': return {space_set().complement(), {}};
      case 'n': return single('\n');
      case 'r': return single('\r');
      case 't': return single('\t');
      case 'f': return single('\f');
      case 'x': return single(hexadecimal(2));
      case 'u': return single(take("{") ? braced_hexadecimal() : hexadecimal(4));
      default: break;
    }
    const bool letter_or_digit = letter < 0x80 && word_set().contains(letter) && letter != '_';
    if (letter_or_digit) fail(std::format("has an escape that is not supported: \\{}", static_cast<char>(letter)));
    return single(letter);
  }

  char32_t hexadecimal(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t read = 0; read < digits; ++read) {
      const std::string_view hex = "0123456789abcdefABCDEF";
      const std::size_t digit = rest_.empty() ? std::string_view::npos : hex.find(rest_.front());
      if (digit == std::string_view::npos) {
        fail("has an escape that lacks digits");
        return 0;
      }
      rest_.remove_prefix(1);
      value = value * 16 + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
    }
    return value;
  }

  char32_t braced_hexadecimal() {
    const std::size_t digits = rest_.find('}');
    const char32_t value = digits <= 6 ? hexadecimal(digits) : 0;
    if (digits > 6 || digits == 0 || value > 0x10ffff || !take("}")) fail("has a code point that is none");
    return value;
  }

  std::string_view rest_;
  GrammarRules& rules_;
  std::string problem_;
};

}  // namespace

Result<std::string> grammar_of_pattern(std::string_view pattern, GrammarRules& rules) {
  return PatternReader(pattern, rules).read();
}

}  // namespace molly::engine
