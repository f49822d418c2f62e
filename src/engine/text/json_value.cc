#include "engine/text/json_value.h"

#include <algorithm>

#include "base/json_writer.h"

namespace molly::engine {
namespace {

using Kind = wire::JsonReader::Kind;

JsonValue read_value(wire::JsonReader& in);

void read_members(wire::JsonReader& in, JsonValue& object) {
  in.object([&](std::string_view key) {
    if (object.find(key) != nullptr) return in.fail("is given twice");
    JsonMember member{std::string(key), read_value(in)};
    object.members.push_back(std::move(member));
  });
}

JsonValue read_value(wire::JsonReader& in) {
  JsonValue value;
  value.kind = in.peek();
  switch (value.kind) {
    case Kind::object: read_members(in, value); break;
    case Kind::array: in.array([&](std::uint32_t) { value.elements.push_back(read_value(in)); }); break;
    case Kind::string: value.text = in.string(); break;
    case Kind::number:
    case Kind::boolean:
    case Kind::null:
    case Kind::none: value.text = in.raw(); break;
  }
  return value;
}

void write(const JsonValue& value, base::JsonWriter& out) {
  switch (value.kind) {
    case Kind::object:
      out.begin_object();
      for (const auto& [name, member] : value.members) write(member, out.key(name));
      out.end_object();
      break;
    case Kind::array:
      out.begin_array();
      for (const JsonValue& element : value.elements) write(element, out);
      out.end_array();
      break;
    case Kind::string: out.value(value.text); break;
    case Kind::number:
    case Kind::boolean: out.raw(value.text); break;
    case Kind::null:
    case Kind::none: out.null(); break;
  }
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto found = std::ranges::find(members, name, &JsonMember::name);
  return found == members.end() ? nullptr : &found->value;
}

Result<JsonValue> parse_json(std::string_view text) {
  wire::JsonReader in(text);
  JsonValue value = read_value(in);
  in.expect_end();
  if (!in.ok()) return failure(ErrorCode::invalid_request, in.problem(), in.path());
  return value;
}

std::string to_text(const JsonValue& value) {
  base::JsonWriter out;
  write(value, out);
  return std::move(out).text();
}

}  // namespace molly::engine
