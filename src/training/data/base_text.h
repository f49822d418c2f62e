#pragma once

#include <filesystem>
#include <memory>

#include "core/error.h"
#include "engine/text/chat_template.h"
#include "engine/text/vocabulary.h"

namespace molly::training {

// What turns a base's conversations into tokens.
struct BaseText {
  std::unique_ptr<engine::Vocabulary> vocabulary;
  std::unique_ptr<engine::ChatTemplate> chat_template;
};

// Reads both from the model file, without its weights. Blocks on the disk. invalid_request: the file has no chat
// template, or one that does not parse; else errors as from gguf::read_model_file.
Result<BaseText> open_base_text(const std::filesystem::path& model);

}  // namespace molly::training
