#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace molly {

// A JSON value exactly as it was spelled: numbers keep their digits, objects their order.
struct RawJson {
  std::string text;
  bool operator==(const RawJson&) const = default;
};

// Members of an object that the typed form has no place for, in the order they came. They survive a
// hop: what a dialect does not know it hands on.
using ExtraFields = std::vector<std::pair<std::string, RawJson>>;

// A number with its spelling: 0.70 stays 0.70 on the way to the target.
struct Number {
  double value = 0;
  std::string spelling;  // empty: render from value

  Number() = default;
  explicit Number(double v) : value(v) {}
  Number(double v, std::string s) : value(v), spelling(std::move(s)) {}
  bool operator==(const Number&) const = default;
};

}  // namespace molly
