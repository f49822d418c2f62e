// Times of the engine's own kernels in CPU milliseconds of one thread, best of several:
//   tools/root bash -c "tools/compile release bench_kernels && build/release/bin/bench_kernels"
// The model is the one of 350 million parameters that the engine is measured with: 24 layers of width 1024, 16 query
// heads and 8 key-value heads of 64 numbers, feed-forward 2816.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <print>
#include <random>
#include <span>
#include <vector>

#include "cpu_time.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/lora.h"
#include "engine/kernels/packed.h"

namespace molly::engine {
namespace {

constexpr std::uint32_t layers = 24;
constexpr std::uint32_t width = 1024;
constexpr std::uint32_t width_kv = 512;
constexpr std::uint32_t feed_forward = 2816;
constexpr std::uint32_t n_head = 16;
constexpr std::uint32_t n_head_kv = 8;
constexpr std::uint32_t head_dim = 64;

double best_of(int times, const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const double start = cpu_milliseconds();
    work();
    best = std::min(best, cpu_milliseconds() - start);
  }
  return best;
}

// Memory as the engine's pool has it, filled with small numbers in half precision.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    data_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (std::getenv("HUGE_PAGES") != nullptr) madvise(data_, bytes, MADV_HUGEPAGE);
    std::minstd_rand random(7);
    auto* halves = reinterpret_cast<std::uint16_t*>(data_);
    for (std::size_t i = 0; i < bytes / 2; ++i) halves[i] = static_cast<std::uint16_t>(0x2000U | (random() & 0x83ffU));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { munmap(data_, bytes_); }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

struct Linear {
  std::uint32_t n_in;
  std::vector<LoraSegment> segments;
};

const std::array<Linear, 4> linears = {
    Linear{width, {{0, width}, {width, width_kv}, {width + width_kv, width_kv}}}, Linear{width, {{0, width}}},
    Linear{width, {{0, feed_forward}, {feed_forward, feed_forward}}}, Linear{feed_forward, {{0, width}}}};

// Adapters of every linear, rows in the order in which a page holds them.
class AdapterSet {
 public:
  AdapterSet(FactorType type, std::uint32_t adapters, std::uint32_t rank, std::uint32_t rows_each)
      : adapter_bytes_(bytes_of_adapter(type, rank)), memory_(adapter_bytes_ * adapters), next_(memory_.data()) {
    factors_.resize(layers * linears.size());
    for (std::uint32_t adapter = 0; adapter < adapters; ++adapter) {
      for (std::size_t i = 0; i < factors_.size(); ++i) {
        const Linear& linear = linears[i % linears.size()];
        for (const LoraSegment& segment : linear.segments) {
          const auto a = take_rows(rank, row_bytes(type, linear.n_in));
          const auto b = take_rows(rank, row_bytes(type, segment.columns));
          factors_[i].push_back({a, b, type, 1.0F});
        }
      }
      rows_.push_back({.first_row = adapter * rows_each, .rows = rows_each, .adapter = adapter});
    }
    const std::vector<std::uint32_t> rank_sums(adapters, rank * 3);
    hidden_.resize(place_hidden(rows_, rank_sums));
    for (std::size_t i = 0; i < factors_.size(); ++i) memory_runs_.push_back(memory_of(linear(i)));
  }

  std::size_t size() const { return factors_.size(); }
  std::size_t bytes() const { return adapter_bytes_ * rows_.size(); }
  LoraLinear linear(std::size_t i) const {
    const Linear& shape = linears[i % linears.size()];
    return {shape.n_in, shape.segments, factors_[i], rows_};
  }
  std::span<const MemoryRun> memory(std::size_t i) const { return memory_runs_[i]; }

  void apply(Isa isa, std::size_t i, const std::vector<float>& x, std::vector<float>& y) {
    lora_shrink(isa, linear(i), {x.data(), feed_forward * sizeof(float)}, hidden_, 0, 1);
    lora_expand(isa, linear(i), hidden_, {y.data(), 2 * feed_forward * sizeof(float)}, 0, 1);
  }

 private:
  static std::size_t bytes_of_adapter(FactorType type, std::uint32_t rank) {
    std::size_t bytes = 0;
    for (const Linear& linear : linears) {
      for (const LoraSegment& segment : linear.segments) {
        bytes += layers * rank * (row_bytes(type, linear.n_in) + row_bytes(type, segment.columns) + 128);
      }
    }
    return bytes;
  }

  std::span<const std::byte* const> take_rows(std::uint32_t rank, std::size_t bytes) {
    auto& rows = pointers_.emplace_back();
    for (std::uint32_t i = 0; i < rank; ++i, next_ += (bytes + 63) / 64 * 64) rows.push_back(next_);
    return rows;
  }

  std::size_t adapter_bytes_;
  Memory memory_;
  std::byte* next_;
  std::deque<std::vector<const std::byte*>> pointers_;
  std::vector<std::vector<LoraFactors>> factors_;
  std::vector<LoraRows> rows_;
  std::vector<float> hidden_;
  std::vector<std::vector<MemoryRun>> memory_runs_;
};

void time_lora(Isa isa, FactorType type, std::uint32_t adapters, std::uint32_t rank, std::uint32_t rows_each) {
  AdapterSet set(type, adapters, rank, rows_each);
  const std::vector<float> x(std::size_t{adapters} * rows_each * feed_forward, 0.01F);
  std::vector<float> y(std::size_t{adapters} * rows_each * 2 * feed_forward);
  const double time = best_of(7, [&] {
    for (std::size_t i = 0; i < set.size(); ++i) set.apply(isa, i, x, y);
  });
  std::println("lora {:6} {:4} {:2} adapters of rank {} x {:3} rows: {:8.2f} ms, {:5.1f} GB/s", to_string(isa),
               type == FactorType::f16 ? "f16" : "q8_0", adapters, rank, rows_each, time,
               static_cast<double>(set.bytes()) / time * 1e-6);
}

void time_attention(Isa isa, KvType type, std::uint32_t sequences, std::uint32_t rows, std::uint32_t context,
                    std::uint32_t page_tokens) {
  const std::size_t row = n_head_kv * head_dim / 32 * (type == KvType::f16 ? 64 : 34);
  const std::size_t half_page = page_tokens * row;
  const std::uint32_t pages_each = (context + page_tokens - 1) / page_tokens;
  const std::size_t page = layers * 2 * half_page;
  const Memory memory(page * sequences * pages_each);
  std::vector<PageId> pages(sequences * pages_each);
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<PageId>(i);
  std::ranges::shuffle(pages, std::minstd_rand(5));
  std::vector<SequenceRows> batch;
  for (std::uint32_t i = 0; i < sequences; ++i) {
    batch.push_back({i * rows, rows, context - rows, std::span(pages).subspan(i * pages_each, pages_each)});
  }
  std::vector<float> queries(std::size_t{sequences} * rows * n_head * head_dim, 0.1F);
  std::vector<float> output(queries.size());
  const HeadRows query_rows{queries.data(), n_head * head_dim * sizeof(float), head_dim * sizeof(float)};
  const HeadRows output_rows{output.data(), n_head * head_dim * sizeof(float), head_dim * sizeof(float)};
  const double time = best_of(5, [&] {
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const PagedKv kv{.base = memory.data(),
                       .page_stride = page,
                       .key_offset = layer * 2 * half_page,
                       .value_offset = (layer * 2 + 1) * half_page,
                       .row_bytes = row,
                       .page_tokens = page_tokens,
                       .type = type,
                       .n_head_kv = n_head_kv,
                       .head_dim = head_dim};
      attend(isa, kv, batch, query_rows, n_head, 0.125F, output_rows, 0, 1);
    }
  });
  std::println("attention {:6} {:4} {} x {:3} rows, context {:4}, pages of {}: {:8.2f} ms, {:5.1f} GB/s",
               to_string(isa), type == KvType::f16 ? "f16" : "q8_0", sequences, rows, context, page_tokens, time,
               static_cast<double>(page) * sequences * pages_each / time * 1e-6);
}

// Every weight matrix of the model once.
class ProductSet {
 public:
  static constexpr std::uint32_t vocabulary = 32000;

  ProductSet(PackedType type, std::uint32_t rows)
      : rows_(rows),
        matrices_(matrices(type)),
        memory_(bytes()),
        x_(std::size_t{rows} * feed_forward, 0.01F),
        activations_(activation_bytes(type, 3072, rows)) {
    const std::byte* next = memory_.data();
    for (PackedMatrix& matrix : matrices_) {
      matrix.data = next;
      next += packed_bytes(type, matrix.n_in, matrix.n_out);
    }
  }

  std::size_t size() const { return matrices_.size(); }
  const std::vector<float>& x() const { return x_; }
  std::size_t bytes() const {
    std::size_t bytes = 0;
    for (const PackedMatrix& matrix : matrices_) bytes += packed_bytes(matrix.type, matrix.n_in, matrix.n_out);
    return bytes;
  }
  void multiply(std::size_t i, std::vector<float>& y, std::span<const MemoryRun> read_next = {}) {
    const PackedMatrix& matrix = matrices_[i];
    const std::size_t stride = i + 1 == matrices_.size() ? vocabulary : 2 * feed_forward;
    quantize_activations(matrix, {x_.data(), feed_forward * sizeof(float)}, rows_, activations_.data(), 0, 1);
    multiply_packed(matrix, activations_.data(), rows_, {y.data(), stride * sizeof(float)}, 0, 1, read_next);
  }

 private:
  static std::vector<PackedMatrix> matrices(PackedType type) {
    std::vector<PackedMatrix> matrices;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      for (const Linear& linear : linears) {
        const LoraSegment& last = linear.segments.back();
        matrices.push_back({.type = type, .n_in = linear.n_in, .n_out = last.first_column + last.columns});
      }
    }
    matrices.push_back({.type = type, .n_in = width, .n_out = vocabulary});
    return matrices;
  }

  std::uint32_t rows_;
  std::vector<PackedMatrix> matrices_;
  Memory memory_;
  std::vector<float> x_;
  std::vector<std::byte> activations_;
};

void time_products(PackedType type, std::uint32_t rows) {
  ProductSet products(type, rows);
  std::vector<float> y(std::size_t{rows} * ProductSet::vocabulary);
  const double time = best_of(7, [&] {
    for (std::size_t i = 0; i < products.size(); ++i) products.multiply(i, y);
  });
  constexpr const char* names[] = {"q4_0", "q8_0", "q4_k", "q6_k"};
  std::println("products {} x {:3} rows: {:8.2f} ms, {:5.1f} GB/s", names[static_cast<std::size_t>(type)], rows, time,
               static_cast<double>(products.bytes()) / time * 1e-6);
}

// Products of eight rows and what adapters add to them: none, one for all, one for each, without and with fetching the
// factors during the products. Interleaved, so that all see the same machine.
void time_adapted_products(FactorType type) {
  constexpr std::uint32_t rows = 8;
  ProductSet products(PackedType::q4_0, rows);
  AdapterSet shared(type, 1, 16, rows);
  AdapterSet mixed(type, rows, 16, 1);
  std::vector<float> y(std::size_t{rows} * ProductSet::vocabulary);
  const auto run = [&](AdapterSet* adapters, bool fetch) {
    for (std::size_t i = 0; i < products.size(); ++i) {
      const bool adapted = adapters != nullptr && i < adapters->size();
      products.multiply(i, y, adapted && fetch ? adapters->memory(i) : std::span<const MemoryRun>{});
      if (adapted) adapters->apply(best_isa(), i, products.x(), y);
    }
  };
  std::array<double, 5> best;
  best.fill(1e30);
  for (int round = 0; round < 12; ++round) {
    const auto time = [&](std::size_t which, AdapterSet* adapters, bool fetch) {
      best[which] = std::min(best[which], best_of(1, [&] { run(adapters, fetch); }));
    };
    time(0, nullptr, false);
    time(1, &shared, false);
    time(2, &shared, true);
    time(3, &mixed, false);
    time(4, &mixed, true);
  }
  std::println(
      "q4_0 x 8 rows, adapters of {}: base {:.2f} ms, one shared {:.2f}, fetched {:.2f}, eight {:.2f}, fetched {:.2f}",
      type == FactorType::f16 ? "f16" : "q8_0", best[0], best[1], best[2], best[3], best[4]);
}

void time_all_products() {
  for (const PackedType type : {PackedType::q4_0, PackedType::q8_0, PackedType::q4_k, PackedType::q6_k}) {
    for (const std::uint32_t rows : {1U, 2U, 4U, 8U, 16U, 64U}) time_products(type, rows);
  }
}

void time_all(Isa isa) {
  for (const FactorType type : {FactorType::f16, FactorType::q8_0}) {
    for (const std::uint32_t adapters : {1U, 8U, 16U}) time_lora(isa, type, adapters, 16, 1);
    time_lora(isa, type, 2, 16, 4);
    time_lora(isa, type, 1, 16, 512);
  }
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    for (const std::uint32_t context : {128U, 512U, 2048U}) time_attention(isa, type, 8, 1, context, 64);
    time_attention(isa, type, 8, 1, 2048, 16);
    time_attention(isa, type, 1, 512, 512, 64);
  }
}

}  // namespace
}  // namespace molly::engine

int main(int count, char** arguments) {
  using namespace molly::engine;
  if (can_multiply_packed() && (count < 2 || std::string_view(arguments[1]) == "adapted")) {
    for (const FactorType type : {FactorType::f16, FactorType::q8_0}) time_adapted_products(type);
  }
  if (can_multiply_packed() && (count < 2 || std::string_view(arguments[1]) == "products")) time_all_products();
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar}) {
    if (is_supported(isa) && (count < 2 || arguments[1] == to_string(isa))) time_all(isa);
  }
}
