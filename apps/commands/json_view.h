#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace molly::apps {

// Reading what Molly's own server prints: values by a path of member names, "" where there is none.
// Text values lose their quotes and escapes; anything else is given as it is spelled.
std::string json_text(std::string_view json, std::string_view path);
// The elements of the array at that path, as they are spelled.
std::vector<std::string> json_elements(std::string_view json, std::string_view path);
// The names of the members of the object at that path.
std::vector<std::string> json_keys(std::string_view json, std::string_view path);

}  // namespace molly::apps
