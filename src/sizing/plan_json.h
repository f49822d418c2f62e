#pragma once

#include "base/json_writer.h"
#include "sizing/engine_plan.h"

// Plans as `molly plan --json` and `molly-engine plan --json` print them.
namespace molly::sizing {

// The value of "device".
void write_device(base::JsonWriter& json, const Device& device, std::uint64_t budget_bytes);

// What a file says of itself, as members of the object that is open.
void write_header(base::JsonWriter& json, const gguf::ModelFile& model);

// The plan, as members of the object that is open.
void write_plan(base::JsonWriter& json, const EnginePlan& plan);

}  // namespace molly::sizing
