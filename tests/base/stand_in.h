#pragma once

#include <string>

namespace molly::base {

// The test program started again in another part: "parent FOLDER MODE" or "control-plane FOLDER MODE --inherited=...".
// Returns the exit code.
int act_as(int argc, char** argv);

}  // namespace molly::base
