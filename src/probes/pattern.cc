#include "probes/pattern.h"

#include <bitset>
#include <charconv>
#include <cstdint>
#include <vector>

namespace molly::probes {

namespace {

using Bytes = std::bitset<256>;
// Bit n: the match may stand before byte n of the text.
using Positions = std::uint64_t;

constexpr std::size_t longest_text = 62;
constexpr std::size_t longest_pattern = 200;
constexpr int deepest_group = 20;
constexpr unsigned most_repeats = 64;
constexpr int most_steps = 200'000;

struct Node {
  enum class Kind : std::uint8_t { bytes, sequence, choice, repeat };
  Kind kind = Kind::sequence;
  Bytes bytes;
  std::vector<Node> parts;
  unsigned least = 1;
  unsigned most = 1;
};

Bytes range(unsigned char first, unsigned char last) {
  Bytes bytes;
  for (unsigned byte = first; byte <= last; ++byte) bytes.set(byte);
  return bytes;
}

// Recursion is bounded by deepest_group.
// NOLINTBEGIN(misc-no-recursion)
class Parser {
 public:
  explicit Parser(std::string_view pattern) : left_(pattern) {}

  bool parse(Node& whole) {
    take('^');
    if (left_.ends_with('$') && !left_.ends_with("\\$")) left_.remove_suffix(1);
    whole = choice(0);
    return !failed_ && left_.empty();
  }

 private:
  bool take(char expected) {
    if (!left_.starts_with(expected)) return false;
    left_.remove_prefix(1);
    return true;
  }

  char next() {
    if (left_.empty()) {
      failed_ = true;
      return 0;
    }
    const char byte = left_.front();
    left_.remove_prefix(1);
    return byte;
  }

  Node choice(int depth) {
    Node node{.kind = Node::Kind::choice};
    if (depth > deepest_group) failed_ = true;
    if (failed_) return node;
    do node.parts.push_back(sequence(depth));
    while (!failed_ && take('|'));
    return node;
  }

  Node sequence(int depth) {
    Node node;
    while (!failed_ && !left_.empty() && left_.front() != '|' && left_.front() != ')') {
      node.parts.push_back(repeated(atom(depth)));
    }
    return node;
  }

  Node atom(int depth) {
    if (take('(')) {
      if (take('?') && !take(':')) failed_ = true;
      Node group = choice(depth + 1);
      if (!take(')')) failed_ = true;
      return group;
    }
    Node node{.kind = Node::Kind::bytes};
    if (take('[')) {
      node.bytes = byte_class();
    } else if (take('.')) {
      node.bytes = ~range('\n', '\n');
    } else if (take('\\')) {
      node.bytes = escaped();
    } else {
      const char byte = next();
      if (std::string_view("*+?{}]^$").contains(byte)) failed_ = true;
      node.bytes.set(static_cast<unsigned char>(byte));
    }
    return node;
  }

  Bytes escaped() {
    const Bytes digits = range('0', '9');
    const Bytes letters = range('a', 'z') | range('A', 'Z');
    const Bytes space = range('\t', '\r') | range(' ', ' ');
    const char name = next();
    switch (name) {
      case 'd': return digits;
      case 'D': return ~digits;
      case 'w': return digits | letters | range('_', '_');
      case 'W': return ~(digits | letters | range('_', '_'));
      case 's': return space;
      case 'S': return ~space;
      default: break;
    }
    const auto byte = static_cast<unsigned char>(name);
    if ((digits | letters).test(byte)) failed_ = true;
    return range(byte, byte);
  }

  Bytes byte_class() {
    const bool opposite = take('^');
    Bytes bytes;
    do class_member(bytes);
    while (!failed_ && !take(']'));
    return opposite ? ~bytes : bytes;
  }

  void class_member(Bytes& bytes) {
    if (take('\\')) {
      bytes |= escaped();
      return;
    }
    const auto first = static_cast<unsigned char>(next());
    if (left_.size() < 2 || left_[0] != '-' || left_[1] == ']') {
      bytes.set(first);
      return;
    }
    left_.remove_prefix(1);
    const auto last = static_cast<unsigned char>(next());
    if (last < first || last == '\\') failed_ = true;
    bytes |= range(first, last);
  }

  Node repeated(Node part) {
    unsigned least = 0;
    unsigned most = most_repeats;
    if (take('?')) {
      most = 1;
    } else if (take('+')) {
      least = 1;
    } else if (take('{')) {
      least = number();
      if (!take(','))
        most = least;
      else if (!left_.starts_with('}'))
        most = number();
      if (!take('}') || most < least) failed_ = true;
    } else if (!take('*')) {
      return part;
    }
    Node node{.kind = Node::Kind::repeat, .least = least, .most = most};
    node.parts.push_back(std::move(part));
    return node;
  }

  unsigned number() {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error != std::errc() || value > most_repeats) failed_ = true;
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return value;
  }

  std::string_view left_;
  bool failed_ = false;
};

class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}

  Positions after(const Node& node, Positions before) {
    if (before == 0 || ++steps_ > most_steps) return 0;
    switch (node.kind) {
      case Node::Kind::bytes: return after_bytes(node.bytes, before);
      case Node::Kind::repeat: return after_repeat(node, before);
      case Node::Kind::sequence:
        for (const Node& part : node.parts) before = after(part, before);
        return before;
      case Node::Kind::choice: break;
    }
    Positions ends = 0;
    for (const Node& part : node.parts) ends |= after(part, before);
    return ends;
  }

  bool gave_up() const { return steps_ > most_steps; }

 private:
  Positions after_bytes(const Bytes& bytes, Positions before) const {
    Positions ends = 0;
    for (std::size_t at = 0; at < text_.size(); ++at) {
      const bool stands_here = (before >> at & 1) != 0;
      if (stands_here && bytes.test(static_cast<unsigned char>(text_[at]))) ends |= Positions{2} << at;
    }
    return ends;
  }

  Positions after_repeat(const Node& node, Positions before) {
    Positions ends = node.least == 0 ? before : 0;
    for (unsigned count = 1; count <= node.most && before != 0; ++count) {
      const Positions next = after(node.parts.front(), before);
      if (count >= node.least) ends |= next;
      if (next == before) return ends | next;
      before = next;
    }
    return ends;
  }

  std::string_view text_;
  int steps_ = 0;
};
// NOLINTEND(misc-no-recursion)

}  // namespace

Result<bool> matches(std::string_view pattern, std::string_view text) {
  if (pattern.size() > longest_pattern || text.size() > longest_text) {
    return failure(ErrorCode::invalid_request, "The pattern or the text is too long.");
  }
  Node whole;
  if (!Parser(pattern).parse(whole)) return failure(ErrorCode::invalid_request, "The pattern cannot be read.");
  Matcher matcher(text);
  const Positions ends = matcher.after(whole, 1);
  if (matcher.gave_up()) return failure(ErrorCode::invalid_request, "The pattern takes too many steps.");
  return (ends >> text.size() & 1) != 0;
}

}  // namespace molly::probes
