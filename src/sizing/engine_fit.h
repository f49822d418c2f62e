#pragma once

#include <optional>
#include <string>

#include "gguf/model_file.h"

// Which model files molly-engine can serve; every other one is llama-server's.
namespace molly::sizing {

// Why molly-engine cannot serve the model, as the end of "molly-engine cannot serve it: ..."; nothing: it can.
// Judged by the header alone, as strictly as the engine itself judges at its start.
std::optional<std::string> unfit_for_engine(const gguf::ModelFile& model);

}  // namespace molly::sizing
