#include "engine/kernels/packed.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/model/backend.h"
#include "numerics.h"

namespace molly::engine {
namespace {

struct PackedCase {
  PackedType type;
  ggml_type ggml;
};

class Packed : public testing::TestWithParam<PackedCase> {
 protected:
  void SetUp() override {
    if (!can_multiply_packed()) GTEST_SKIP() << "this processor has no AVX-512 VNNI";
  }

  std::vector<float> uniform(std::size_t count) {
    std::uniform_real_distribution<float> numbers(-1, 1);
    std::vector<float> out(count);
    for (float& number : out) number = numbers(random_);
    return out;
  }

  std::vector<std::byte> quantized(const std::vector<float>& numbers, std::uint32_t n_in) const {
    const ggml_type type = GetParam().ggml;
    const auto rows = static_cast<std::int64_t>(numbers.size() / n_in);
    std::vector<std::byte> bytes(ggml_row_size(type, n_in) * static_cast<std::size_t>(rows));
    ggml_quantize_chunk(type, numbers.data(), bytes.data(), 0, rows, n_in, nullptr);
    return bytes;
  }

  // By ggml, weights in the file's own form.
  static std::vector<float> expected(ggml_type type, const std::vector<std::byte>& weights, std::uint32_t n_in,
                                     std::uint32_t n_out, std::vector<float>& x) {
    const auto backend = Backend::open({.threads = 1}).value();
    const Context context(ggml_init({.mem_size = std::size_t{64} << 20, .mem_buffer = nullptr, .no_alloc = true}));
    ggml_tensor* w = ggml_new_tensor_2d(context.get(), type, n_in, n_out);
    ggml_tensor* input =
        ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, n_in, static_cast<std::int64_t>(x.size() / n_in));
    ggml_tensor* y = ggml_mul_mat(context.get(), w, input);
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, y);
    const Buffer buffer(ggml_backend_alloc_ctx_tensors_from_buft(context.get(), backend->plain()));
    ggml_backend_tensor_set(w, weights.data(), 0, weights.size());
    ggml_backend_tensor_set(input, x.data(), 0, x.size() * sizeof(float));
    EXPECT_TRUE(backend->compute(graph));
    std::vector<float> out(static_cast<std::size_t>(ggml_nelements(y)));
    ggml_backend_tensor_get(y, out.data(), 0, out.size() * sizeof(float));
    return out;
  }

  std::vector<float> product(const std::vector<std::byte>& weights, std::uint32_t n_in, std::uint32_t n_out,
                             const std::vector<float>& x, int threads,
                             std::span<const MemoryRun> read_next = {}) const {
    const PackedType type = GetParam().type;
    std::vector<std::byte> memory(packed_bytes(type, n_in, n_out));
    for (std::uint32_t part = 0; part < 3; ++part) pack(type, weights, n_in, n_out, memory.data(), part, 3);
    const PackedMatrix matrix{.type = type, .n_in = n_in, .n_out = n_out, .data = memory.data()};
    const auto rows = static_cast<std::uint32_t>(x.size() / n_in);
    std::vector<std::byte> activations(activation_bytes(type, n_in, rows));
    std::vector<float> y(std::size_t{rows} * n_out);
    for (int thread = 0; thread < threads; ++thread) {
      quantize_activations(matrix, {x.data(), n_in * sizeof(float)}, rows, activations.data(), thread, threads);
    }
    for (int thread = 0; thread < threads; ++thread) {
      multiply_packed(matrix, activations.data(), rows, {y.data(), n_out * sizeof(float)}, thread, threads, read_next);
    }
    return y;
  }

  std::mt19937 random_{5};
};

TEST_P(Packed, multiplies_as_ggml_does) {
  for (const std::uint32_t n_in : {256U, 1024U}) {
    for (const std::uint32_t n_out : {16U, 48U, 50U}) {
      const auto weights = quantized(uniform(std::size_t{n_in} * n_out), n_in);
      for (const std::uint32_t rows : {1U, 2U, 3U, 7U, 8U, 9U, 21U}) {
        auto x = uniform(std::size_t{rows} * n_in);
        const auto wanted = expected(GetParam().ggml, weights, n_in, n_out, x);
        for (const int threads : {1, 2, 5}) {
          EXPECT_LT(nmse(product(weights, n_in, n_out, x, threads), wanted), 1e-10)
              << n_in << " x " << n_out << ", " << rows << " rows, " << threads << " threads";
        }
      }
    }
  }
}

TEST_P(Packed, a_rows_product_does_not_depend_on_the_other_rows) {
  constexpr std::uint32_t n_in = 512;
  constexpr std::uint32_t n_out = 64;
  const auto weights = quantized(uniform(std::size_t{n_in} * n_out), n_in);
  const auto x = uniform(std::size_t{19} * n_in);
  const auto together = product(weights, n_in, n_out, x, 2);
  for (std::size_t row = 0; row < 19; ++row) {
    const std::vector<float> own(x.begin() + static_cast<long>(row * n_in),
                                 x.begin() + static_cast<long>((row + 1) * n_in));
    const auto alone = product(weights, n_in, n_out, own, 1);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<long>(row * n_out))) << row;
  }
}

TEST_P(Packed, what_is_fetched_meanwhile_does_not_change_the_product) {
  constexpr std::uint32_t n_in = 512;
  constexpr std::uint32_t n_out = 50;
  const auto weights = quantized(uniform(std::size_t{n_in} * n_out), n_in);
  const auto x = uniform(std::size_t{9} * n_in);
  const std::vector<std::byte> memory(std::size_t{64} * cache_line);
  const std::vector<MemoryRun> runs = {{memory.data(), 1}, {memory.data(), 64}, {memory.data(), 3}};
  for (const int threads : {1, 2, 5}) {
    const auto wanted = product(weights, n_in, n_out, x, threads);
    for (std::size_t count = 0; count <= runs.size(); ++count) {
      EXPECT_EQ(product(weights, n_in, n_out, x, threads, std::span(runs).first(count)), wanted);
    }
  }
}

TEST_P(Packed, zeros_give_zeros) {
  const auto weights = quantized(uniform(4096), 256);
  EXPECT_EQ(product(weights, 256, 16, std::vector<float>(256), 1), std::vector<float>(16));
}

INSTANTIATE_TEST_SUITE_P(Types, Packed,
                         testing::Values(PackedCase{PackedType::q4_0, GGML_TYPE_Q4_0},
                                         PackedCase{PackedType::q8_0, GGML_TYPE_Q8_0},
                                         PackedCase{PackedType::q4_k, GGML_TYPE_Q4_K},
                                         PackedCase{PackedType::q6_k, GGML_TYPE_Q6_K}),
                         [](const auto& instance) { return std::string(ggml_type_name(instance.param.ggml)); });

}  // namespace
}  // namespace molly::engine
