#include "wire/json_members.h"

#include <algorithm>
#include <vector>

namespace molly::wire {

void refuse_duplicates(JsonReader& in, const ExtraFields& extra) {
  std::vector<std::string_view> names;
  names.reserve(extra.size());
  for (const auto& [name, value] : extra) names.emplace_back(name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) in.fail_member(*twice, "is given twice");
}

}  // namespace molly::wire
