#include "labels/name_set.h"

#include <algorithm>
#include <iterator>

namespace molly::labels {

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > NameSet::max_name_length) return false;
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:@-").contains(c);
  });
}

NameSet NameSet::none() {
  NameSet set;
  set.all_ = false;
  return set;
}

NameSet NameSet::of(std::vector<std::string> names) {
  NameSet set = none();
  std::erase_if(names, [](const std::string& name) { return !is_name(name); });
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  if (names.size() > max_names) names.resize(max_names);
  set.names_ = std::move(names);
  return set;
}

NameSet NameSet::of(std::initializer_list<std::string_view> names) {
  return of(std::vector<std::string>(names.begin(), names.end()));
}

bool NameSet::contains(std::string_view name) const { return all_ || std::ranges::binary_search(names_, name); }

NameSet intersection(const NameSet& a, const NameSet& b) {
  if (a.is_all()) return b;
  if (b.is_all()) return a;
  std::vector<std::string> both;
  std::ranges::set_intersection(a.names(), b.names(), std::back_inserter(both));
  return NameSet::of(std::move(both));
}

bool is_subset(const NameSet& inner, const NameSet& outer) {
  if (outer.is_all()) return true;
  return !inner.is_all() && std::ranges::includes(outer.names(), inner.names());
}

std::string to_string(const NameSet& set) {
  if (set.is_all()) return "*";
  if (set.names().empty()) return "-";
  std::string text;
  for (const std::string& name : set.names()) {
    if (!text.empty()) text += '+';
    text += name;
  }
  return text;
}

namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<NameSet> parse_name_set(std::string_view text) {
  text = trimmed(text);
  if (text == "*") return NameSet::all();
  if (text == "-") return NameSet::none();
  std::vector<std::string> names;
  while (true) {
    const std::size_t end = text.find_first_of("+,");
    const std::string_view name = trimmed(text.substr(0, end));
    if (!is_name(name))
      return failure(ErrorCode::invalid_request, "A name is 1 to 64 letters, digits or characters of \"._:@-\".");
    names.emplace_back(name);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (names.size() > NameSet::max_names) return failure(ErrorCode::invalid_request, "A set has at most 64 names.");
  return NameSet::of(std::move(names));
}

}  // namespace molly::labels
