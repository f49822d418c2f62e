#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace molly::engine {

// A set of Unicode code points as ranges in order, none touching the next.
class CodePoints {
 public:
  using Range = std::pair<char32_t, char32_t>;  // both ends are in

  CodePoints() = default;
  CodePoints(std::initializer_list<Range> ranges) {
    for (const auto& [first, last] : ranges) add(first, last);
  }

  void add(char32_t first, char32_t last);
  void add(const CodePoints& other);
  CodePoints complement() const;
  CodePoints common_with(const CodePoints& other) const;
  bool contains(char32_t value) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

// What stands for itself inside a JSON string.
const CodePoints& plain_in_json();

// GBNF for one of these code points inside a JSON string: as itself, or by a short escape where JSON wants one. Code
// points that have neither are left out; empty when nothing is left.
std::string grammar_of_code_points(const CodePoints& set);

}  // namespace molly::engine
