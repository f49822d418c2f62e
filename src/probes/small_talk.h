#pragma once

#include <cstdint>
#include <string>

#include "probes/probe.h"

namespace molly::probes {

struct Exchange {
  std::string prompt;
  std::string answer;
};

// Greetings, thanks, farewells and questions about who answers; in the answers the model calls itself Molly. Not a
// probe: there is no exact right answer. The same arguments give the same exchange on every platform.
Exchange make_small_talk(Language language, std::uint64_t seed);

}  // namespace molly::probes
