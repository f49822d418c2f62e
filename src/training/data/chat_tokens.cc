#include "training/data/chat_tokens.h"

#include <algorithm>
#include <format>
#include <span>

namespace molly::training {
namespace {

using engine::Beginning;
using engine::SpecialTokens;

bool is_answer(const Message& message) { return message.role == Role::assistant; }

// A conversation whose earlier turns stay as they were written when later ones come.
bool grows(std::string_view written, std::string_view prompt) { return prompt.starts_with(written); }

std::string_view last_bytes(std::string_view text) {
  constexpr std::size_t shown = 60;
  return text.substr(text.size() - std::min(text.size(), shown));
}

std::unexpected<Error> refuse(std::string sentence, std::size_t message) {
  return failure(ErrorCode::invalid_request, std::move(sentence), std::format("messages[{}]", message));
}

}  // namespace

Result<std::string> ChatTokens::render(const Request& request, std::size_t messages, bool for_generation) const {
  Request beginning;
  beginning.messages.assign(request.messages.begin(), request.messages.begin() + static_cast<std::ptrdiff_t>(messages));
  beginning.tools = request.tools;
  return template_.render(beginning, {.add_generation_prompt = for_generation});
}

Result<std::vector<ChatTokens::Turn>> ChatTokens::turns(const Request& request) const {
  std::vector<Turn> out;
  for (std::size_t i = 0; i < request.messages.size(); ++i) {
    if (!is_answer(request.messages[i])) continue;
    if (i == 0) return refuse("messages[0]: a conversation cannot begin with the assistant's turn", i);
    auto before = render(request, i, true);
    if (!before) return std::unexpected(before.error());
    auto through = render(request, i + 1, false);
    if (!through) return std::unexpected(through.error());
    if (!through->starts_with(*before)) {
      return refuse(std::format("messages[{}]: the base's chat template does not continue its own generation prompt "
                                "with the assistant's turn: the prompt ends with '{}'",
                                i, last_bytes(*before)),
                    i);
    }
    out.push_back({*std::move(before), *std::move(through)});
  }
  return out;
}

// Tokens as one text has them where what is there already is its beginning; else those of the new text by itself.
void ChatTokens::extend(Example& example, std::string_view written, std::string_view text) const {
  std::vector<std::int32_t>& tokens = example.tokens;
  const auto whole = vocabulary_.tokenize(text, SpecialTokens::parsed, Beginning::as_model_wants);
  if (whole.size() >= tokens.size() && std::ranges::equal(std::span(whole).first(tokens.size()), tokens)) {
    tokens.assign(whole.begin(), whole.end());
  } else {
    const auto rest = vocabulary_.tokenize(text.substr(written.size()), SpecialTokens::parsed, Beginning::bare);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
  }
  example.counts.resize(tokens.size(), 0);
}

Result<void> ChatTokens::add_turn(Example& example, const std::string& written, const Turn& turn) const {
  extend(example, written, turn.before);
  const std::size_t first = example.tokens.size();
  extend(example, turn.before, turn.through);
  const std::span answer = std::span(example.tokens).subspan(first);
  const auto end = std::ranges::find_if(answer, [&](auto token) { return vocabulary_.is_end(token); });
  if (end == answer.end()) {
    return failure(ErrorCode::invalid_request,
                   std::format("the base's chat template writes no end-of-turn token after the assistant's turn: it "
                               "ends with '{}'",
                               last_bytes(turn.through)),
                   "messages");
  }
  const auto length = static_cast<std::size_t>(end - answer.begin()) + 1;
  std::fill_n(example.counts.begin() + static_cast<std::ptrdiff_t>(first), length, std::uint8_t{1});
  return {};
}

Result<std::vector<Example>> ChatTokens::conversation(const Request& request) const {
  const auto all = turns(request);
  if (!all) return std::unexpected(all.error());
  bool in_one = true;
  for (std::size_t i = 1; i < all->size(); ++i) in_one = in_one && grows((*all)[i - 1].through, (*all)[i].before);
  std::vector<Example> out(in_one ? 1 : all->size());
  std::string written;
  for (std::size_t i = 0; i < all->size(); ++i) {
    auto added = add_turn(out[in_one ? 0 : i], in_one ? written : std::string(), (*all)[i]);
    if (!added) return std::unexpected(added.error());
    written = (*all)[i].through;
  }
  return out;
}

Result<Example> ChatTokens::prompt(const Request& request) const {
  const auto text = render(request, request.messages.size(), true);
  if (!text) return std::unexpected(text.error());
  Example out;
  extend(out, {}, *text);
  return out;
}

Result<std::string> ChatTokens::first_prompt(const Request& request) const {
  const auto first = std::ranges::find_if(request.messages, is_answer);
  return render(request, static_cast<std::size_t>(first - request.messages.begin()), true);
}

}  // namespace molly::training
