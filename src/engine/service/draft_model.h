#pragma once

#include <memory>

#include "core/error.h"
#include "engine/memory/page_pool.h"
#include "engine/model/backend.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"
#include "engine/schedule/draft_source.h"
#include "engine/service/engine.h"
#include "engine/text/vocabulary.h"

namespace molly::engine {

// A second, smaller model that guesses what the first one says, with a pool of its own.
class DraftModel {
 public:
  // invalid_request when its vocabulary is another one, naming the first token that differs; else errors as from
  // Model::load and Forward::create. `backend` must outlive it. Blocks until the model is loaded and was measured.
  static Result<std::unique_ptr<DraftModel>> open(const EngineOptions& options, Backend& backend,
                                                  const Vocabulary& vocabulary);

  // Once; the draft model must outlive it.
  std::unique_ptr<DraftSource> take_drafter() { return std::move(drafter_); }

 private:
  DraftModel() = default;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<DraftSource> drafter_;
};

}  // namespace molly::engine
