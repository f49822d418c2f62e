#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/text/answer/call_format.h"

namespace molly::engine {

struct StepMatch {
  enum class Outcome : std::uint8_t { no, partial, whole };
  Outcome outcome = Outcome::no;
  std::size_t length = 0;             // bytes of the whole match
  const std::string* tool = nullptr;  // which name it passed

  bool is_whole() const { return outcome == Outcome::whole; }
  bool is_partial() const { return outcome == Outcome::partial; }
};

// Whether `text` begins with the steps; partial: it may, once more text has come.
StepMatch match_steps(std::span<const Step> steps, std::string_view text, std::span<const std::string> tools);

}  // namespace molly::engine
