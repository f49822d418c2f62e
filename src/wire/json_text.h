#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace molly::wire {

// The text as a JSON string with its quotes; bytes beyond ASCII stay as they are.
std::string json_string(std::string_view text);

// The number as it was spelled, or the shortest spelling of its value.
std::string json_number(const Number& number);

// Writes one JSON value into a string that it owns. Commas come by themselves; nesting is the caller's duty.
//   JsonWriter out;
//   out.begin_object().key("id").string("x").end_object();
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view value);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& unsigned_integer(std::uint64_t value);
  JsonWriter& number(const Number& value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // as it is: valid JSON
  JsonWriter& members(const ExtraFields& extra);

  // Bytes outside the JSON grammar's care, such as the framing of an event stream.
  JsonWriter& verbatim(std::string_view bytes);

  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  void clear();
  std::string_view view() const { return text_; }
  std::string take();

 private:
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace molly::wire
