#pragma once

#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/text/sampler.h"
#include "engine/text/token_text.h"
#include "text_model.h"

// A model that knows nothing: it writes at random, and what helps to come to an end after a while.
namespace molly::engine {

inline float urge_to_end(Token token) {
  const Vocabulary& vocabulary = embedded_vocabulary();
  if (vocabulary.is_end(token)) return 200;
  const std::string piece = vocabulary.piece(token);
  if (piece == "\"" || piece == "}" || piece == "]") return 100;
  if (piece == ":" || piece == ",") return 60;
  if (piece == "{" || piece == "[") return 10;
  return piece.size() == 1 && piece[0] > ' ' ? 40.0F : 0.0F;
}

inline const std::vector<float>& urges() {
  static const std::vector<float> all = [] {
    std::vector<float> values;
    for (std::uint32_t token = 0; token < embedded_vocabulary().size(); ++token) {
      values.push_back(urge_to_end(static_cast<Token>(token)));
    }
    return values;
  }();
  return all;
}

// What it writes with these settings, once it has written `beginning` where it may.
inline std::string written(SamplingSettings settings, std::uint32_t seed, std::string_view beginning = {}) {
  constexpr std::size_t free_tokens = 12;
  constexpr std::size_t most_tokens = 1500;
  settings.top_k = 0;
  settings.top_p = 1;
  settings.min_p = 0;
  settings.seed = seed;
  const Vocabulary& vocabulary = embedded_vocabulary();
  auto made = make_chooser(vocabulary, settings, {});
  if (!made) return "no chooser: " + made.error().message;
  const std::vector<Token> wanted = vocabulary.tokenize(beginning, SpecialTokens::as_text, Beginning::bare);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::string text;
  for (std::size_t count = 0; count < most_tokens; ++count) {
    std::vector<float> logits(urges().size());
    for (std::size_t at = 0; at < logits.size(); ++at) {
      logits[at] = normal(random) + (count < wanted.size() + free_tokens ? 0.0F : urges()[at]);
    }
    if (count < wanted.size()) logits[static_cast<std::size_t>(wanted[count])] += 1000;
    const Choice choice = (*made)->choose(logits);
    if (choice.end_of_generation) return text;
    text += vocabulary.piece(choice.token);
  }
  return text + " ... and so on";
}

}  // namespace molly::engine
