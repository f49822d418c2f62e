// usage: bench_steps MODEL: CPU milliseconds of one thread for whole forward passes of the base, with the engine's
// paged attention and with flash attention over contiguous keys and values (see contiguous_attention.h). Everything
// else is the same for both. A table for people, and medians as one line of JSON.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <numeric>
#include <print>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "contiguous_attention.h"
#include "cpu_time.h"
#include "engine/model/forward.h"
#include "engine/model/model.h"

namespace molly::engine {
namespace {

constexpr std::uint32_t context_tokens = 2048;
constexpr std::uint32_t chunk_tokens = 512;
constexpr std::uint32_t page_tokens = 64;
constexpr std::uint32_t sequences = 8;
constexpr int decode_rounds = 15;
constexpr int prefill_rounds = 3;
// Of the logits' root mean square. Flash attention sums values in half precision, paged attention in single.
constexpr double tolerance = 0.05;

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Value>
Value checked(Result<Value> result) {
  if (!result) throw Wrong(result.error().message);
  return std::move(result).value();
}

void stay_on_one_core() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(sched_getcpu(), &cores);
  if (sched_setaffinity(0, sizeof(cores), &cores) != 0) throw Wrong("cannot stay on one core");
}

// Sequences with one and the same prompt, but for the token after it.
class Variant {
 public:
  // `pages` of `page_tokens` tokens hold one sequence.
  Variant(const Model& model, Backend& backend, std::uint32_t pages_each, MakeOperations operations)
      : forward_(checked(Forward::create(model, backend,
                                         {.pages = pages_each * sequences,
                                          .page_tokens = context_tokens / pages_each,
                                          .max_rows = chunk_tokens,
                                          .make_operations = std::move(operations)}))),
        tables_(sequences, std::vector<PageId>(pages_each)) {
    // Pages of a sequence lie anywhere.
    std::vector<PageId> pages(std::size_t{pages_each} * sequences);
    std::iota(pages.begin(), pages.end(), 0);
    if (pages_each > 1) std::ranges::shuffle(pages, std::minstd_rand(5));
    for (std::size_t i = 0; i < pages.size(); ++i) tables_[i / pages_each][i % pages_each] = pages[i];
  }

  void prefill(std::span<const Token> prompt) {
    for (std::uint32_t begin = 0; begin < prompt.size(); begin += chunk_tokens) {
      const StepSequence sequence{.tokens = prompt.subspan(begin, chunk_tokens),
                                  .first_position = begin,
                                  .pages = tables_[0],
                                  .adapters = {},
                                  .wanted = Wanted::last};
      checked(forward_->run({&sequence, 1}));
    }
  }

  // Gives every sequence the keys and values of the first.
  void copy_to_all() {
    for (std::size_t i = 1; i < tables_.size(); ++i) {
      for (std::size_t page = 0; page < tables_[i].size(); ++page)
        forward_->copy_page(tables_[0][page], tables_[i][page]);
    }
  }

  // A token for each sequence, at the last position of the context.
  void decode(std::span<const Token> tokens) {
    std::vector<StepSequence> batch;
    batch.reserve(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      batch.push_back({.tokens = tokens.subspan(i, 1),
                       .first_position = context_tokens - 1,
                       .pages = tables_[i],
                       .adapters = {},
                       .wanted = Wanted::last});
    }
    checked(forward_->run(batch));
  }

  std::span<const float> logits(std::uint32_t output) { return forward_->logits(output); }

 private:
  std::unique_ptr<Forward> forward_;
  std::vector<std::vector<PageId>> tables_;  // by sequence
};

double relative_difference(std::span<const float> left, std::span<const float> right) {
  double squares = 0;
  double difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    squares += double{left[i]} * left[i];
    difference += (double{left[i]} - right[i]) * (double{left[i]} - right[i]);
  }
  return std::sqrt(difference / squares);
}

void check_logits(Variant& paged, Variant& contiguous, std::uint32_t outputs, std::string_view what) {
  for (std::uint32_t output = 0; output < outputs; ++output) {
    const double difference = relative_difference(paged.logits(output), contiguous.logits(output));
    std::println(stderr, "{}, output {}: logits differ by {:.4f} of their size", what, output, difference);
    if (!(difference <= tolerance)) throw Wrong("the logits of both variants are not the same");
  }
}

struct Times {
  double median = 0;
  double best = 0;
};

Times times_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {samples[samples.size() / 2], samples.front()};
}

struct Comparison {
  Times paged;
  Times contiguous;
  double ratio = 0;  // median of the rounds' ratios
};

// The variants take turns at being first.
template <class Work>
Comparison compare(Variant& paged, Variant& contiguous, int rounds, const Work& work) {
  std::array<std::vector<double>, 2> samples;
  const std::array<Variant*, 2> variants = {&paged, &contiguous};
  for (Variant* variant : variants) work(*variant);
  for (int round = 0; round < rounds; ++round) {
    for (const int turn : {0, 1}) {
      const auto number = static_cast<std::size_t>((round + turn) % 2);
      const double start = cpu_milliseconds();
      work(*variants[number]);
      samples[number].push_back(cpu_milliseconds() - start);
    }
  }
  std::vector<double> ratios;
  ratios.reserve(samples[0].size());
  for (std::size_t i = 0; i < samples[0].size(); ++i) ratios.push_back(samples[0][i] / samples[1][i]);
  return {times_of(samples[0]), times_of(samples[1]), times_of(ratios).median};
}

void tell(std::string_view what, const Comparison& result) {
  std::println(stderr, "{:34} {:9.1f} {:9.1f}   {:9.1f} {:9.1f}   {:.3f}", what, result.paged.median, result.paged.best,
               result.contiguous.median, result.contiguous.best, result.ratio);
}

std::string json(std::string_view name, const Comparison& result) {
  return std::format(
      R"("{0}":{{"paged_ms":{1:.2f},"paged_best_ms":{2:.2f},"contiguous_ms":{3:.2f},"contiguous_best_ms":{4:.2f},"ratio":{5:.3f}}})",
      name, result.paged.median, result.paged.best, result.contiguous.median, result.contiguous.best, result.ratio);
}

std::vector<Token> random_tokens(std::size_t count, std::uint32_t vocabulary) {
  std::minstd_rand random(7);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = static_cast<Token>(random() % vocabulary);
  return tokens;
}

void measure(const char* file) {
  stay_on_one_core();
  const auto backend = checked(Backend::open({.threads = 1}));
  const auto model = checked(Model::load(file, *backend));
  Variant paged(*model, *backend, context_tokens / page_tokens, {});
  Variant contiguous(*model, *backend, 1,
                     [](const ModelConfig& config, const Backend& on, StepData& step, const PoolLayout& pool) {
                       return std::make_unique<ContiguousAttention>(config, on, step, pool);
                     });
  const std::vector<Token> tokens = random_tokens(context_tokens + sequences, model->config().n_vocab);
  const auto prompt = std::span(tokens).first(context_tokens);
  const auto next = std::span(tokens).last(sequences);

  for (Variant* variant : {&paged, &contiguous}) {
    variant->prefill(prompt);
    variant->copy_to_all();
  }
  check_logits(paged, contiguous, 1, "prefill");
  for (Variant* variant : {&paged, &contiguous}) variant->decode(next);
  check_logits(paged, contiguous, sequences, "decode");

  std::println(stderr, "{:34} {:>19}   {:>19}", "CPU ms", "paged", "contiguous");
  std::println(stderr, "{:34} {:>9} {:>9}   {:>9} {:>9}   ratio", "", "median", "best", "median", "best");
  const Comparison decode_8 =
      compare(paged, contiguous, decode_rounds, [&](Variant& variant) { variant.decode(next); });
  tell(std::format("step of {} x {} tokens", sequences, context_tokens), decode_8);
  const Comparison decode_1 =
      compare(paged, contiguous, decode_rounds, [&](Variant& variant) { variant.decode(next.first(1)); });
  tell(std::format("step of 1 x {} tokens", context_tokens), decode_1);
  const Comparison prefill =
      compare(paged, contiguous, prefill_rounds, [&](Variant& variant) { variant.prefill(prompt); });
  tell(std::format("prompt of {} in chunks of {}", context_tokens, chunk_tokens), prefill);
  std::println("{{{},{},{}}}", json("decode_8", decode_8), json("decode_1", decode_1), json("prefill", prefill));
}

}  // namespace
}  // namespace molly::engine

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: bench_steps MODEL\n";
    return 2;
  }
  try {
    molly::engine::measure(arguments[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_steps: " << error.what() << '\n';
    return 1;
  }
}
