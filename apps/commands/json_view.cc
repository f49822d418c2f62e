#include "commands/json_view.h"

#include "wire/json_reader.h"

namespace molly::apps {
namespace {

std::string_view member(std::string_view json, std::string_view name) {
  wire::JsonReader reader(json);
  std::string_view found;
  if (reader.peek() != wire::JsonReader::Kind::object) return {};
  reader.object([&](std::string_view key) {
    const std::string_view value = reader.raw();
    if (key == name) found = value;
  });
  return found;
}

std::string_view at(std::string_view json, std::string_view path) {
  while (!path.empty()) {
    const auto dot = path.find('.');
    json = member(json, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return json;
}

}  // namespace

std::string json_text(std::string_view json, std::string_view path) {
  const std::string_view value = at(json, path);
  if (!value.starts_with('"')) return std::string(value);
  return wire::JsonReader(value).string();
}

std::vector<std::string> json_elements(std::string_view json, std::string_view path) {
  const std::string_view value = at(json, path);
  std::vector<std::string> out;
  if (!value.starts_with('[')) return out;
  wire::JsonReader reader(value);
  reader.array([&](std::uint32_t) { out.emplace_back(reader.raw()); });
  return out;
}

std::vector<std::string> json_keys(std::string_view json, std::string_view path) {
  const std::string_view value = at(json, path);
  std::vector<std::string> out;
  if (!value.starts_with('{')) return out;
  wire::JsonReader reader(value);
  reader.object([&](std::string_view key) {
    out.emplace_back(key);
    reader.skip();
  });
  return out;
}

}  // namespace molly::apps
