#include "engine/service/draft_model.h"

#include <utility>

#include "engine/schedule/model_drafter.h"
#include "engine/service/pool_pages.h"

namespace molly::engine {
namespace {

Result<void> check_vocabulary(const std::filesystem::path& draft_model, const Vocabulary& vocabulary) {
  const auto drafting = Vocabulary::open(draft_model);
  if (!drafting) return std::unexpected(drafting.error());
  auto fits = (*drafting)->can_draft_for(vocabulary);
  if (fits) return fits;
  fits.error().message = draft_model.filename().string() + " cannot draft for this model: " + fits.error().message;
  fits.error().field = "draft-model";
  return fits;
}

}  // namespace

Result<std::unique_ptr<DraftModel>> DraftModel::open(const EngineOptions& options, Backend& backend,
                                                     const Vocabulary& vocabulary) {
  if (auto fits = check_vocabulary(options.draft_model, vocabulary); !fits) return std::unexpected(fits.error());
  std::unique_ptr<DraftModel> out(new DraftModel);
  auto model = Model::load(options.draft_model, backend);
  if (!model) return std::unexpected(model.error());
  out->model_ = std::move(*model);
  const auto page = page_bytes(out->model_->config(), options.page_tokens, options.kv_type);
  const auto pages = pages_of_pool(options.draft_pool_bytes, page, "draft-pool");
  if (!pages) return std::unexpected(pages.error());
  auto forward = Forward::create(
      *out->model_, backend,
      {.pages = *pages, .page_tokens = options.page_tokens, .kv_type = options.kv_type, .max_rows = options.max_rows});
  if (!forward) return std::unexpected(forward.error());
  out->forward_ = std::move(*forward);
  out->pool_ = std::make_unique<PagePool>(*pages);
  auto drafter = std::make_unique<ModelDrafter>(
      *out->forward_, *out->pool_, std::make_shared<StepCost>(),
      ModelDrafterOptions{
          .max_pages = *pages, .max_rows = options.schedule.prefill_chunk, .clock = options.schedule.clock});
  if (auto measured = drafter->measure(); !measured) return std::unexpected(measured.error());
  out->drafter_ = std::move(drafter);
  return out;
}

}  // namespace molly::engine
