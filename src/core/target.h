#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tier.h"

namespace molly {

// Price in millionths of the configured currency per million tokens: 1.25 a million is 1'250'000.
struct Price {
  std::int64_t input_micros_per_million = 0;
  std::int64_t output_micros_per_million = 0;
  bool operator==(const Price&) const = default;
};

struct Modalities {
  bool text = true;
  bool image = false;
  bool audio = false;
  bool file = false;
  bool operator==(const Modalities&) const = default;
};

// What policy and routing know of something that can answer. How to reach it is the driver's business.
struct TargetDescription {
  std::string name;  // unique; what `model` may name
  Tier tier = Tier::t0;
  std::string zone;    // residency zone: "device", "lan", "eu", ...
  std::string driver;  // "openai", "managed"
  std::string model;   // the model's name in the target's own terms
  std::string adapter;
  Modalities modalities;
  bool tools = true;
  std::optional<std::uint32_t> context_length;  // tokens; unknown when absent
  std::optional<Price> price;                   // absent: free
  std::string provider;                         // T3: who runs it, for grants
  bool operator==(const TargetDescription&) const = default;
};

// How a target would take a request right now, best first.
enum class Health : std::uint8_t {
  ready,    // would be sent to at once
  cold,     // a model process that has to be started first
  busy,     // at its limit of requests at a time
  failing,  // its circuit breaker is open or its process cannot start
};
std::string_view to_string(Health health);

}  // namespace molly
