#pragma once

#include "base/json_writer.h"
#include "core/json.h"

namespace molly::wire {

inline void write_members(base::JsonWriter& out, const ExtraFields& extra) {
  for (const auto& [name, value] : extra) out.raw_member(name, value.text);
}

// The number as it was spelled, if it was.
inline void write_number(base::JsonWriter& out, const Number& number) {
  if (number.spelling.empty()) {
    out.value(number.value);
  } else {
    out.raw(number.spelling);
  }
}

}  // namespace molly::wire
