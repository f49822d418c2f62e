#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace molly::probes {

// Without the white space around it.
std::string_view trim(std::string_view text);

// Equal but for one full stop behind `given`.
bool same_text(std::string_view expected, std::string_view given);
// Equal but for white space around the items of a list with commas, and a full stop behind it.
bool same_list(std::string_view expected, std::string_view given);
// Equal line by line, but for white space around lines.
bool same_lines(std::string_view expected, std::string_view given);
// Equal but for white space and the order of members.
bool same_json(std::string_view expected, std::string_view given);

// One spelling for all equal JSON texts: no white space, members by name, numbers as they are spelled. Null: not JSON,
// or with a member named twice.
std::optional<std::string> canonical_json(std::string_view text);

}  // namespace molly::probes
