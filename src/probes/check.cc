#include "probes/check.h"

#include <cstdint>
#include <map>

#include "base/json_writer.h"
#include "wire/json_reader.h"

namespace molly::probes {

namespace {

constexpr std::string_view white_space = " \t\r\n";

std::string_view without_stop(std::string_view expected, std::string_view given) {
  if (given.ends_with('.') && !expected.ends_with('.')) given.remove_suffix(1);
  return given;
}

// Every piece between separators, with the white space around it taken off.
std::string pieces(std::string_view text, char separator) {
  std::string trimmed;
  while (true) {
    const std::size_t end = text.find(separator);
    trimmed += trim(text.substr(0, end));
    if (end == std::string_view::npos) return trimmed;
    trimmed += separator;
    text.remove_prefix(end + 1);
  }
}

// Recursion is bounded by JsonReader::max_depth.
std::string canonical_value(wire::JsonReader& json) {  // NOLINT(misc-no-recursion)
  using Kind = wire::JsonReader::Kind;
  const Kind kind = json.peek();
  if (kind == Kind::string) return base::json_string(json.string());
  if (kind == Kind::array) {
    std::string text;
    json.array([&](std::uint32_t index) {
      text += index == 0 ? "" : ",";
      text += canonical_value(json);
    });
    return "[" + text + "]";
  }
  if (kind != Kind::object) return std::string(json.raw());
  std::map<std::string, std::string> members;
  json.object([&](std::string_view key) {
    std::string name = base::json_string(key);
    if (members.contains(name)) json.fail("is given twice");
    members[std::move(name)] = canonical_value(json);
  });
  std::string text;
  for (const auto& [name, value] : members) {
    text += text.empty() ? "" : ",";
    text += name;
    text += ":";
    text += value;
  }
  return "{" + text + "}";
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(white_space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white_space) + 1 - first);
}

bool same_text(std::string_view expected, std::string_view given) { return without_stop(expected, given) == expected; }

bool same_list(std::string_view expected, std::string_view given) {
  return pieces(without_stop(expected, given), ',') == pieces(expected, ',');
}

bool same_lines(std::string_view expected, std::string_view given) {
  return pieces(given, '\n') == pieces(expected, '\n');
}

bool same_json(std::string_view expected, std::string_view given) {
  const auto canonical = canonical_json(given);
  return canonical && canonical == canonical_json(expected);
}

std::optional<std::string> canonical_json(std::string_view text) {
  wire::JsonReader json(text);
  std::string canonical = canonical_value(json);
  json.expect_end();
  if (!json.ok()) return std::nullopt;
  return canonical;
}

}  // namespace molly::probes
