#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace molly::labels {

// A set of names, or the set of all names, of which combining keeps only what both allow. Used for zones
// and for readers. A plain value: names need not be known to anybody. Sorted, unique.
class NameSet {
 public:
  static constexpr std::size_t max_names = 64;
  static constexpr std::size_t max_name_length = 64;

  NameSet() = default;  // every name
  static NameSet all() { return NameSet(); }
  static NameSet none();
  // Names must be valid (see is_name); what is not is left out, which only narrows the set.
  static NameSet of(std::vector<std::string> names);
  static NameSet of(std::initializer_list<std::string_view> names);

  bool is_all() const { return all_; }
  bool contains(std::string_view name) const;
  // The names, sorted; empty for none() and for all().
  const std::vector<std::string>& names() const { return names_; }

  bool operator==(const NameSet&) const = default;

 private:
  bool all_ = true;
  std::vector<std::string> names_;
};

// Letters, digits and "._:@-", 1 to max_name_length of them.
bool is_name(std::string_view text);

NameSet intersection(const NameSet& a, const NameSet& b);
bool is_subset(const NameSet& inner, const NameSet& outer);

// "*" for all, "-" for none, otherwise the names joined by "+".
std::string to_string(const NameSet& set);
// The inverse. Also accepts "," between names, as people write lists in headers.
Result<NameSet> parse_name_set(std::string_view text);

}  // namespace molly::labels
