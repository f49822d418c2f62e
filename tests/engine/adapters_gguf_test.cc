#include <gmock/gmock.h>

#include <limits>

#include "adapters_file_writer.h"
#include "engine/adapters/image.h"
#include "engine/adapters/lora_formats.h"
#include "engine/adapters/number_format.h"
#include "engine/kernels/half.h"

namespace molly::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of(const GgufAdapter& adapter, const BaseShape& base = small_base()) {
  const auto file = parse_lora_gguf(adapter.source(), base);
  if (file) return "accepted";
  EXPECT_EQ(file.error().code, ErrorCode::invalid_request);
  return file.error().message;
}

std::string refusal_with(NamedMatrix a, NamedMatrix b) {
  return refusal_of({.matrices = {std::move(a), std::move(b)}});
}

TEST(GgufAdapter, gives_every_factor_with_its_own_rank_and_scale) {
  const auto file = parse_lora_gguf(small_gguf_adapter().source(), small_base());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->name, "Test adapter");
  ASSERT_EQ(file->tensors.size(), 2U);
  const auto& q = file->tensors[0];
  EXPECT_EQ(q.layer, 0U);
  EXPECT_EQ(q.projection, Projection::attn_q);
  EXPECT_EQ(q.rank(), 2U);
  EXPECT_FLOAT_EQ(q.scale, 2);
  EXPECT_EQ(numbers_of(*file, q.a), counting(16));
  EXPECT_EQ(numbers_of(*file, q.b), counting(16));
  const auto& down = file->tensors[1];
  EXPECT_EQ(down.layer, 1U);
  EXPECT_EQ(down.projection, Projection::ffn_down);
  EXPECT_EQ(down.rank(), 1U);
  EXPECT_FLOAT_EQ(down.scale, 4);
}

TEST(GgufAdapter, alpha_zero_means_no_scaling) {
  auto adapter = small_gguf_adapter();
  adapter.alpha = 0;
  EXPECT_FLOAT_EQ(parse_lora_gguf(adapter.source(), small_base())->tensors[0].scale, 1);
}

TEST(GgufAdapter, reads_half_bfloat_and_quantized_numbers) {
  gguf::FileWriter file;
  file.start(2, 4).string_entry("general.type", "adapter").string_entry("general.architecture", "llama");
  file.string_entry("adapter.type", "lora").key("adapter.lora.alpha", 6).number(1.0F);
  file.tensor("blk.0.attn_q.weight.lora_a", {32, 1}, 8, 0).tensor("blk.0.attn_q.weight.lora_b", {1, 2}, 30, 64);
  file.data(0).number(float_to_half(0.25F));
  for (int i = 0; i < 32; ++i) file.number(static_cast<std::int8_t>(i - 16));
  file.data(0).number<std::uint16_t>(0x3f80).number<std::uint16_t>(0xc000);
  BaseShape base = small_base();
  base.projections[0] = {32, 2};
  const auto adapter = parse_lora_gguf(bytes_in_memory(file.bytes()), base);
  ASSERT_TRUE(adapter) << adapter.error().message;
  const auto a = numbers_of(*adapter, adapter->tensors[0].a);
  EXPECT_FLOAT_EQ(a.front(), -4);
  EXPECT_FLOAT_EQ(a.back(), 3.75);
  EXPECT_THAT(numbers_of(*adapter, adapter->tensors[0].b), ElementsAre(1, -2));
}

TEST(GgufAdapter, refuses_what_is_for_another_base) {
  auto adapter = small_gguf_adapter();
  adapter.architecture = "qwen2";
  EXPECT_THAT(refusal_of(adapter), HasSubstr("architecture 'qwen2', the base is 'llama'"));
  EXPECT_EQ(refusal_with(matrix("blk.1.attn_q.weight.lora_a", 2, 6), matrix("blk.1.attn_q.weight.lora_b", 8, 2)),
            "blk.1.attn_q: the adapter's A has 6 columns, the base 8");
  EXPECT_EQ(refusal_with(matrix("blk.1.attn_k.weight.lora_a", 2, 8), matrix("blk.1.attn_k.weight.lora_b", 8, 2)),
            "blk.1.attn_k: the adapter's B has 8 rows, the base 4");
  EXPECT_EQ(refusal_with(matrix("blk.2.attn_q.weight.lora_a", 2, 8), matrix("blk.2.attn_q.weight.lora_b", 8, 2)),
            "blk.2.attn_q: the base has only 2 layers");
}

TEST(GgufAdapter, refuses_factors_that_do_not_belong_together) {
  EXPECT_EQ(refusal_with(matrix("blk.0.attn_q.weight.lora_a", 2, 8), matrix("blk.0.attn_q.weight.lora_b", 8, 3)),
            "blk.0.attn_q: the adapter's A has rank 2, its B 3");
  EXPECT_EQ(refusal_with(matrix("blk.0.attn_q.weight.lora_a", 2, 8), matrix("blk.0.attn_k.weight.lora_b", 4, 2)),
            "blk.0.attn_q: the adapter has an A but no B");
  EXPECT_EQ(refusal_of({.matrices = {matrix("blk.0.attn_q.weight.lora_b", 8, 2)}}),
            "blk.0.attn_q: the adapter has a B but no A");
  EXPECT_EQ(refusal_with(matrix("blk.0.attn_q.weight.lora_a", 2, 8), matrix("blk.0.attn_q.weight.lora_a", 2, 8)),
            "blk.0.attn_q: the adapter has its A twice");
  EXPECT_THAT(refusal_of({}), HasSubstr("changes nothing"));
}

TEST(GgufAdapter, refuses_ranks_beyond_any_sense) {
  const auto with_rank = [](std::uint64_t rank) {
    return refusal_with(matrix("blk.0.attn_q.weight.lora_a", rank, 8), matrix("blk.0.attn_q.weight.lora_b", 8, rank));
  };
  EXPECT_THAT(with_rank(0), HasSubstr("rank is 0; it must be 1 to 512"));
  EXPECT_EQ(with_rank(512), "accepted");
  EXPECT_THAT(with_rank(513), HasSubstr("rank is 513; it must be 1 to 512"));
}

TEST(GgufAdapter, refuses_tensors_that_it_cannot_adapt) {
  for (const char* name : {"token_embd.weight.lora_a", "output.weight.lora_a", "blk.0.attn_norm.weight.lora_a",
                           "blk.0.attn_q.bias.lora_a", "blk.0.attn_q.weight", "blk.x.attn_q.weight.lora_a",
                           "blk.-1.attn_q.weight.lora_a", "blk.99999999999999999999.attn_q.weight.lora_a"}) {
    EXPECT_EQ(refusal_of({.matrices = {matrix(name, 2, 8)}}),
              "adapters of the tensor '" + std::string(name) + "' are not supported");
  }
}

TEST(GgufAdapter, shows_strange_names_in_a_harmless_form) {
  EXPECT_EQ(refusal_of({.matrices = {matrix("a\n\xff\x1b", 1, 1)}}),
            "adapters of the tensor 'a" + std::string(3, '?') + "' are not supported");
}

TEST(GgufAdapter, refuses_other_kinds_of_files) {
  auto adapter = small_gguf_adapter();
  adapter.type = "model";
  EXPECT_THAT(refusal_of(adapter), HasSubstr("no adapter"));
  adapter = small_gguf_adapter();
  adapter.adapter_type = "control_vector";
  EXPECT_THAT(refusal_of(adapter), HasSubstr("'control_vector' are not supported"));
  EXPECT_FALSE(parse_lora_gguf(bytes_in_memory(gguf::small_model().bytes()), small_base()));
  EXPECT_FALSE(parse_lora_gguf(bytes_in_memory({}), small_base()));
}

TEST(GgufAdapter, refuses_numbers_that_are_none) {
  const auto refusal_of = [](const GgufAdapter& adapter) {
    const auto file = parse_lora_gguf(adapter.source(), small_base());
    if (!file) return file.error().message;
    const auto image = make_image(*file, FactorType::f16, 1024);
    return image ? "accepted" : image.error().message;
  };
  auto adapter = small_gguf_adapter();
  EXPECT_EQ(refusal_of(adapter), "accepted");
  adapter.matrices[1].numbers[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal_of(adapter), HasSubstr("blk.0.attn_q: the adapter holds numbers that are infinite"));
  adapter = small_gguf_adapter();
  adapter.matrices[2].numbers[0] = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(refusal_of(adapter), HasSubstr("blk.1.ffn_down"));
  adapter = small_gguf_adapter();
  adapter.alpha = std::numeric_limits<float>::infinity();
  EXPECT_THAT(refusal_of(adapter), HasSubstr("alpha"));
}

TEST(GgufAdapter, refuses_types_that_it_cannot_convert_and_tensors_that_overlap) {
  const auto with = [](std::uint32_t type, std::uint64_t offset_of_b) {
    gguf::FileWriter file;
    file.start(2, 4).string_entry("general.type", "adapter").string_entry("general.architecture", "llama");
    file.string_entry("adapter.type", "lora").key("adapter.lora.alpha", 6).number(1.0F);
    file.tensor("blk.0.attn_q.weight.lora_a", {8, 4}, 0, 0)
        .tensor("blk.0.attn_q.weight.lora_b", {4, 8}, type, offset_of_b);
    const auto adapter = parse_lora_gguf(bytes_in_memory(file.data(512).bytes()), small_base());
    return adapter ? "accepted" : adapter.error().message;
  };
  EXPECT_EQ(with(0, 128), "accepted");
  EXPECT_THAT(with(28, 128), HasSubstr("number type is not supported"));
  EXPECT_THAT(with(0, 96), HasSubstr("overlap"));
}

TEST(GgufAdapter, refuses_every_truncation) {
  const auto bytes = small_gguf_adapter().bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(
        parse_lora_gguf(bytes_in_memory({bytes.begin(), bytes.begin() + static_cast<long>(length)}), small_base()))
        << length;
  }
}

}  // namespace
}  // namespace molly::engine
