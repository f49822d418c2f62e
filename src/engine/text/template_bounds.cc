#include "engine/text/template_bounds.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace molly::engine {
namespace {

constexpr std::size_t longest_source = std::size_t{256} << 10;
constexpr std::size_t longest_text = std::size_t{16} << 10;
constexpr std::size_t most_code = 2'000;
constexpr int deepest = 50;
constexpr std::size_t most_tags = 5'000;

constexpr std::array<std::string_view, 6> openings = {"if", "for", "macro", "call", "filter", "generation"};

class Scan {
 public:
  explicit Scan(std::string_view source) : rest_(source) {}

  bool is_within_bounds() {
    while (!rest_.empty() && within_) {
      const std::size_t tag = next_tag();
      require(tag <= longest_text);
      rest_.remove_prefix(std::min(tag, rest_.size()));
      if (rest_.empty()) break;
      require(++tags_ <= most_tags);
      rest_.starts_with("{#") ? comment() : code();
    }
    return within_;
  }

 private:
  void require(bool condition) { within_ = within_ && condition; }

  std::size_t next_tag() const {
    std::size_t at = rest_.find('{');
    while (at < rest_.size() && (at + 1 == rest_.size() || !std::string_view("{%#").contains(rest_[at + 1]))) {
      at = rest_.find('{', at + 1);
    }
    return std::min(at, rest_.size());
  }

  void comment() {
    const std::size_t end = std::min(rest_.find("#}"), rest_.size());
    require(end <= longest_text);
    rest_.remove_prefix(std::min(end + 2, rest_.size()));
  }

  void code() {
    if (rest_.starts_with("{%")) count_block();
    rest_.remove_prefix(2);
    std::size_t length = 0;
    int brackets = 0;
    while (!rest_.empty() && within_) {
      const bool end = rest_.starts_with("}}") || rest_.starts_with("%}");
      if (end && brackets <= 0) return rest_.remove_prefix(2);
      const char c = rest_.front();
      if (c == '"' || c == '\'') {
        pass_string(c);
        continue;
      }
      if (c == '(' || c == '[' || c == '{') ++brackets;
      if (c == ')' || c == ']' || c == '}') --brackets;
      require(brackets <= deepest && ++length <= most_code);
      rest_.remove_prefix(1);
    }
  }

  void pass_string(char quote) {
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote) at += rest_[at] == '\\' ? 2 : 1;
    require(at <= longest_text);
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
  }

  void count_block() {
    std::string_view word = rest_.substr(2);
    word.remove_prefix(std::min(word.find_first_not_of("-+ \t\r\n"), word.size()));
    if (word.starts_with("end")) --blocks_;
    if (std::ranges::any_of(openings, [&](std::string_view opening) { return word.starts_with(opening); })) ++blocks_;
    require(blocks_ <= deepest);
  }

  std::string_view rest_;
  std::size_t tags_ = 0;
  int blocks_ = 0;
  bool within_ = true;
};

}  // namespace

bool is_within_template_bounds(std::string_view source) {
  return source.size() <= longest_source && Scan(source).is_within_bounds();
}

}  // namespace molly::engine
