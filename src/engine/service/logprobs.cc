#include "engine/service/logprobs.h"

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"

namespace molly::engine {
namespace {

using base::JsonWriter;

void write_token(JsonWriter& json, const Vocabulary& vocabulary, Token token, float logprob) {
  const std::string piece = vocabulary.piece(token, SpecialTokens::parsed);
  json.member("token", piece).member("logprob", static_cast<double>(logprob)).key("bytes").begin_array();
  for (const char byte : piece) json.value(static_cast<unsigned>(static_cast<unsigned char>(byte)));
  json.end_array();
}

// How far ahead of the next likely token the chosen one was.
double margin(const Choice& choice) {
  double other = 0;
  for (const TokenLogprob& likely : choice.most_likely) {
    if (likely.token != choice.token) other = std::max(other, std::exp(static_cast<double>(likely.logprob)));
  }
  return std::exp(static_cast<double>(choice.logprob)) - other;
}

}  // namespace

RawJson chat_logprobs(const Vocabulary& vocabulary, std::span<const Choice> tokens) {
  JsonWriter json;
  json.begin_object().key("content").begin_array();
  for (const Choice& choice : tokens) {
    json.begin_object();
    write_token(json, vocabulary, choice.token, choice.logprob);
    json.key("top_logprobs").begin_array();
    for (const TokenLogprob& likely : choice.most_likely) {
      json.begin_object();
      write_token(json, vocabulary, likely.token, likely.logprob);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("refusal").null().end_object();
  return {std::move(json).text()};
}

RawJson completion_logprobs(const Vocabulary& vocabulary, std::span<const Choice> tokens, std::size_t text_offset) {
  JsonWriter json;
  json.begin_object().key("tokens").begin_array();
  for (const Choice& choice : tokens) json.value(vocabulary.piece(choice.token, SpecialTokens::parsed));
  json.end_array().key("token_logprobs").begin_array();
  for (const Choice& choice : tokens) json.value(static_cast<double>(choice.logprob));
  json.end_array().key("top_logprobs").begin_array();
  for (const Choice& choice : tokens) {
    json.begin_object();
    for (const TokenLogprob& likely : choice.most_likely) {
      json.member(vocabulary.piece(likely.token, SpecialTokens::parsed), static_cast<double>(likely.logprob));
    }
    json.end_object();
  }
  json.end_array().key("text_offset").begin_array();
  for (const Choice& choice : tokens) {
    json.value(text_offset);
    text_offset += vocabulary.piece(choice.token).size();
  }
  json.end_array().end_object();
  return {std::move(json).text()};
}

RawJson confidence(std::span<const Choice> tokens) {
  double sum = 0;
  double lowest = 1;
  JsonWriter json;
  json.begin_object().key("tokens").begin_array();
  for (const Choice& choice : tokens) {
    const double probability = std::exp(static_cast<double>(choice.logprob));
    sum += probability;
    lowest = std::min(lowest, probability);
    json.begin_object().member("probability", probability).member("margin", margin(choice)).end_object();
  }
  json.end_array().member("mean", tokens.empty() ? 0 : sum / static_cast<double>(tokens.size()));
  json.member("lowest", tokens.empty() ? 0 : lowest).end_object();
  return {std::move(json).text()};
}

}  // namespace molly::engine
