#include "training/data/base_text.h"

#include "gguf/model_file.h"

namespace molly::training {
namespace {

std::string text_of(const engine::Vocabulary& vocabulary, std::optional<engine::Token> token) {
  return token ? vocabulary.piece(*token, engine::SpecialTokens::parsed) : std::string();
}

}  // namespace

Result<BaseText> open_base_text(const std::filesystem::path& model) {
  const auto header = gguf::read_model_file(model);
  if (!header) return std::unexpected(header.error());
  if (header->chat_template.empty()) {
    return failure(ErrorCode::invalid_request,
                   model.string() + " has no chat template: conversations cannot be written as this base reads them");
  }
  auto vocabulary = engine::Vocabulary::open(model);
  if (!vocabulary) return std::unexpected(vocabulary.error());
  auto chat_template =
      engine::ChatTemplate::parse(header->chat_template, text_of(**vocabulary, (*vocabulary)->beginning()),
                                  text_of(**vocabulary, (*vocabulary)->end()));
  if (!chat_template) return std::unexpected(chat_template.error());
  return BaseText{*std::move(vocabulary), *std::move(chat_template)};
}

}  // namespace molly::training
