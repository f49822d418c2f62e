#pragma once

#include <memory>
#include <stdexcept>

#include "engine/text/vocabulary.h"

namespace molly::engine {

// The embedded model's vocabulary, opened once.
inline const Vocabulary& embedded_vocabulary() {
  static const std::unique_ptr<Vocabulary> vocabulary = [] {
    auto opened = Vocabulary::open(MOLLY_SOURCE_DIR "/models/nano.gguf");
    if (!opened) throw std::runtime_error(opened.error().message);
    return *std::move(opened);
  }();
  return *vocabulary;
}

}  // namespace molly::engine
