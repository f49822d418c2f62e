#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "wire/json_reader.h"

// One spelling for all texts of the same JSON value: members sorted, no space, strings escaped one way, numbers as
// they were spelled. Two texts are the same value with the same numbers when their canonical forms are equal.
namespace molly::wire {

inline std::string canonical_value(JsonReader& in) {
  if (in.peek() == JsonReader::Kind::string) return base::json_string(in.string());
  if (in.peek() == JsonReader::Kind::array) {
    std::string list;
    in.array([&](std::uint32_t index) { list += (index > 0 ? "," : "") + canonical_value(in); });
    return "[" + list + "]";
  }
  if (in.peek() != JsonReader::Kind::object) return std::string(in.raw());
  std::map<std::string, std::string> members;
  in.object([&](std::string_view key) { members[std::string(key)] = canonical_value(in); });
  std::string object;
  for (const auto& [name, value] : members) {
    object += (object.empty() ? "" : ",") + base::json_string(name) + ":" + value;
  }
  return "{" + object + "}";
}

inline std::string canonical(std::string_view json) {
  JsonReader in(json);
  std::string value = canonical_value(in);
  in.expect_end();
  return in.ok() ? value : "not JSON: " + in.path() + " " + in.problem();
}

}  // namespace molly::wire
