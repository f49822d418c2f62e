#include "engine/schedule/pushed_drafts.h"

#include <algorithm>

namespace molly::engine {

bool PushedDrafts::open(std::string_view channel, GenerationId sequence) {
  return channels_.try_emplace(std::string(channel), Channel{.sequence = sequence}).second;
}

void PushedDrafts::push(std::string_view channel, std::uint32_t position, std::span<const Token> tokens) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  Channel& known = found->second;
  const bool continues = position >= known.position && position - known.position <= known.tokens.size();
  if (continues) {
    known.tokens.resize(position - known.position);
  } else {
    known.position = position;
    known.tokens.clear();
  }
  const auto taken = tokens.first(std::min(tokens.size(), most_tokens - known.tokens.size()));
  known.tokens.insert(known.tokens.end(), taken.begin(), taken.end());
}

std::vector<std::vector<Token>> PushedDrafts::draft(std::span<const DraftWish> wishes) {
  std::vector<std::vector<Token>> drafts;
  drafts.reserve(wishes.size());
  for (const DraftWish& wish : wishes) {
    const auto found = channels_.find(wish.channel);
    drafts.push_back(found == channels_.end() ? std::vector<Token>() : take(found->second, wish));
  }
  return drafts;
}

std::vector<Token> PushedDrafts::take(Channel& channel, const DraftWish& wish) {
  if (channel.position > wish.tokens.size()) return {};
  const auto generated = wish.tokens.subspan(channel.position);
  const auto agreeing = std::ranges::mismatch(channel.tokens, generated);
  if (agreeing.in2 != generated.end()) {
    channel.tokens.clear();
    return {};
  }
  channel.tokens.erase(channel.tokens.begin(), agreeing.in1);
  channel.position = static_cast<std::uint32_t>(wish.tokens.size());
  const auto count = std::min<std::size_t>(wish.depth, channel.tokens.size());
  return {channel.tokens.begin(), channel.tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

void PushedDrafts::forget(GenerationId sequence) {
  std::erase_if(channels_, [&](const auto& one) { return one.second.sequence == sequence; });
}

}  // namespace molly::engine
