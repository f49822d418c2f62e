#include "engine/text/sampler_settings.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <string_view>

namespace molly::engine {
namespace {

constexpr float unbounded = std::numeric_limits<float>::max();
constexpr std::size_t most_breakers = 64;
constexpr std::size_t longest_breaker = 40;  // libllama cuts what is longer
constexpr std::size_t longest_grammar = std::size_t{4} << 20;
constexpr int deepest_grammar = 500;  // brackets; libllama's parser recurses

struct Range {
  std::string_view field;
  float value;
  float least;
  float most;
};

struct WholeRange {
  std::string_view field;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

std::unexpected<Error> refuse(std::string_view field, std::string sentence) {
  return failure(ErrorCode::invalid_request, std::move(sentence), std::string(field));
}

Result<void> check(const Range& range) {
  if (range.value >= range.least && range.value <= range.most) return {};
  if (range.most == unbounded) return refuse(range.field, std::format("must be a number of at least {}", range.least));
  return refuse(range.field, std::format("must be a number from {} to {}", range.least, range.most));
}

Result<void> check(const WholeRange& range) {
  if (range.value >= range.least && range.value <= range.most) return {};
  return refuse(range.field, std::format("must be a whole number from {} to {}", range.least, range.most));
}

template <class Ranges>
Result<void> check_all(const Ranges& ranges) {
  for (const auto& range : ranges) {
    if (auto checked = check(range); !checked) return checked;
  }
  return {};
}

Result<void> check_numbers(const SamplingSettings& s) {
  const Range ranges[] = {
      {"temperature", s.temperature, 0, unbounded},
      {"dynatemp_range", s.dynamic_temperature_range, 0, unbounded},
      {"dynatemp_exponent", s.dynamic_temperature_exponent, 0, unbounded},
      {"top_p", s.top_p, 0, 1},
      {"min_p", s.min_p, 0, 1},
      {"typical_p", s.typical_p, 0, 1},
      {"top_n_sigma", s.top_n_sigma, -unbounded, unbounded},
      {"xtc_probability", s.xtc_probability, 0, 1},
      {"xtc_threshold", s.xtc_threshold, 0, 1},
      {"repeat_penalty", s.repeat_penalty, std::numeric_limits<float>::min(), unbounded},
      {"presence_penalty", s.presence_penalty, -unbounded, unbounded},
      {"frequency_penalty", s.frequency_penalty, -unbounded, unbounded},
      {"dry_multiplier", s.dry_multiplier, 0, unbounded},
      {"dry_base", s.dry_base, 0, unbounded},
      {"mirostat_tau", s.mirostat_tau, 0, unbounded},
      {"mirostat_eta", s.mirostat_eta, 0, unbounded},
  };
  return check_all(ranges);
}

Result<void> check_whole_numbers(const SamplingSettings& s, std::int64_t tokens) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const WholeRange ranges[] = {
      {"top_k", s.top_k, -1, most},
      {"repeat_last_n", s.repeat_last_n, -1, most},
      {"dry_allowed_length", s.dry_allowed_length, 0, most},
      {"dry_penalty_last_n", s.dry_penalty_last_n, -1, most},
      {"mirostat", s.mirostat, 0, 2},
      {"top_logprobs", s.top_logprobs, 0, tokens},
  };
  return check_all(ranges);
}

Result<void> check_bias(const SamplingSettings& settings, const Vocabulary& vocabulary) {
  for (const auto& [token, bias] : settings.logit_bias) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= vocabulary.size()) {
      return refuse("logit_bias", std::format("{} is not a token of this model", token));
    }
    if (std::isnan(bias) || bias > unbounded) return refuse("logit_bias", "a bias must be a number or -infinity");
  }
  return {};
}

Result<void> check_breakers(const SamplingSettings& settings) {
  constexpr std::string_view field = "dry_sequence_breakers";
  const auto& breakers = settings.dry_sequence_breakers;
  if (breakers.size() > most_breakers) return refuse(field, std::format("may list up to {} texts", most_breakers));
  const auto bad = [](const std::string& text) {
    return text.empty() || text.size() > longest_breaker || text.contains('\0');
  };
  if (!std::ranges::any_of(breakers, bad)) return {};
  return refuse(field, std::format("each must have 1 to {} bytes, none of them zero", longest_breaker));
}

Result<void> check_grammar_text(const std::string& grammar) {
  if (grammar.size() > longest_grammar) return refuse("grammar", "is too long");
  if (grammar.contains('\0')) return refuse("grammar", "holds a zero byte");
  int depth = 0;
  for (const char c : grammar) {
    if (c == '(') ++depth;
    if (c == ')' && depth > 0) --depth;
    if (depth > deepest_grammar) return refuse("grammar", "is nested too deeply");
  }
  return {};
}

}  // namespace

Result<void> check_settings(const SamplingSettings& settings, const Vocabulary& vocabulary) {
  if (auto numbers = check_numbers(settings); !numbers) return numbers;
  if (auto numbers = check_whole_numbers(settings, vocabulary.size()); !numbers) return numbers;
  if (auto bias = check_bias(settings, vocabulary); !bias) return bias;
  if (auto breakers = check_breakers(settings); !breakers) return breakers;
  return check_grammar_text(settings.grammar);
}

}  // namespace molly::engine
