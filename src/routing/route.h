#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "core/target.h"

// First form of the router: among the cleared targets, what fits the request, ordered by health, tier and price.
namespace molly::routing {

// What a request needs from whoever answers it.
struct CapabilityProfile {
  Modalities needs;
  bool needs_tools = false;
  std::uint64_t token_upper_bound = 0;  // of the prompt; no tokenizer makes more of it
  std::uint64_t max_tokens = 0;         // asked for in the answer; 0: not said
};

CapabilityProfile capability_profile(const Request& request, std::uint64_t token_upper_bound);

// One target as the router sees it at the time of the decision.
struct TargetView {
  const TargetDescription* description = nullptr;
  Health health = Health::ready;
  bool cleared = false;  // by policy, for this request
};

// The part of the request that chooses: "auto", one name, or the names behind an alias.
struct Selection {
  bool automatic = true;
  std::vector<std::string> names;  // in order of preference when not automatic
};

enum class Fit : std::uint8_t {
  fits,             // the byte bound already fits the context
  unknown_context,  // the target does not say how long it is
  count_needed,     // the byte bound does not fit: only an exact count can tell
  not_selected,     // the request names another target
  not_cleared,      // policy excluded it; the clearance knows the rule
  lacks_image,
  lacks_audio,
  lacks_file,
  lacks_tools,
};
std::string_view to_string(Fit fit);

struct Candidate {
  std::uint32_t target = 0;  // index into the views
  Fit fit = Fit::fits;
  Health health = Health::ready;
};

struct Rejection {
  std::uint32_t target = 0;
  Fit fit = Fit::not_selected;
};

struct Route {
  std::vector<Candidate> candidates;  // best first
  std::vector<Rejection> rejections;
};

// Total and deterministic: equal input, equal route. Every view ends in exactly one of the two lists.
Route choose(std::span<const TargetView> targets, const Selection& selection, const CapabilityProfile& profile);

// Whether `prompt_tokens`, counted exactly, and the answer asked for fit into `context_length`.
bool fits_context(std::uint64_t prompt_tokens, std::uint64_t max_tokens, std::uint32_t context_length);

}  // namespace molly::routing
