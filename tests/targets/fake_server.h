#pragma once

namespace molly::targets {

// A model server that answers /health and /v1/completions on its unix socket and misbehaves on demand:
//   --fake-exit CODE       ends at once
//   --fake-exit-unless F   ends with code 1 while the file F does not exist
//   --fake-silent          never listens
//   --fake-no-token        answers completions with 500
//   --fake-stubborn N      needs N SIGTERMs before it goes (9: only SIGKILL helps)
int play_model_server(int argc, char** argv);

}  // namespace molly::targets
