// However an answer is cut into pieces, no byte is lost but those around calls and reasoning, and every argument told
// whole is JSON. The first byte chooses the form and how pieces are cut.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "engine/text/answer/answer_parser.h"

namespace {

using namespace molly::engine;

std::shared_ptr<const AnswerForm> form_of(std::uint8_t choice) {
  constexpr molly::gguf::ToolCallForm forms[] = {molly::gguf::ToolCallForm::hermes, molly::gguf::ToolCallForm::llama3,
                                                 molly::gguf::ToolCallForm::mistral_list,
                                                 molly::gguf::ToolCallForm::mistral_args};
  AnswerForm form{.calls = call_format(forms[choice & 3U]), .tools = {"get", "get_all"}};
  if ((choice & 4U) != 0) form.reasoning = ReasoningTags{"<think>", "</think>"};
  if ((choice & 8U) != 0) form.reasoning_start = ReasoningStart::opened;
  return std::make_shared<AnswerForm>(std::move(form));
}

std::string parsed(const std::shared_ptr<const AnswerForm>& form, std::string_view text, std::size_t piece) {
  AnswerParser parser(form);
  std::string told;
  AnswerPart::Kind last = AnswerPart::Kind::content;
  const auto add = [&](const std::vector<AnswerPart>& parts) {
    for (const AnswerPart& part : parts) {
      const bool continues = part.kind == last && part.kind != AnswerPart::Kind::call;
      if (!continues) told += "\n" + std::to_string(static_cast<int>(part.kind)) + " ";
      if (part.kind == AnswerPart::Kind::arguments && last == AnswerPart::Kind::content) std::abort();
      told += part.text;
      last = part.kind;
    }
  };
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) add(parser.append(text.substr(0, piece)));
  add(parser.finish());
  return told;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto form = form_of(*data);
  const std::size_t piece = 1 + (*data >> 4U);
  if (parsed(form, text, piece) != parsed(form, text, size)) std::abort();
  return 0;
}
