#include "gguf/model_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "file_writer.h"
#include "gguf/memory.h"

namespace molly::gguf {
namespace {

Result<ModelFile> parse(const FileWriter& file) { return parse_model_file(file.bytes(), file.bytes().size()); }

std::string refusal(const FileWriter& file) {
  const auto model = parse(file);
  return model ? "accepted" : model.error().message;
}

TEST(ModelFile, a_small_file_tells_everything) {
  const auto model = parse(small_model());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_EQ(model->name, "Small");
  EXPECT_EQ(model->layers, 2U);
  EXPECT_EQ(model->context_length, 128U);
  EXPECT_EQ(model->heads, 4U);
  EXPECT_EQ(model->per_layer("attention.head_count_kv", 9), (std::vector<std::uint64_t>{2, 0}));
  EXPECT_EQ(model->vocabulary, 3U);
  EXPECT_EQ(model->chat_template, "{{ messages }}");
  EXPECT_EQ(model->metadata.at("some.flag"), Value(true));
  EXPECT_EQ(model->metadata.at("some.real"), Value(2.5));
  ASSERT_EQ(model->tensors.size(), 2U);
  EXPECT_EQ(model->tensors[0].bytes, 3U * 2 * 18);
  EXPECT_EQ(model->tensor_bytes, 3U * 2 * 18 + 64 * 4);
  EXPECT_EQ(model->parameters, 64U * 3 + 64);
  EXPECT_EQ(model->quantization, "F32");
}

TEST(ModelFile, every_truncation_is_refused) {
  const auto bytes = small_model().bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_model_file(std::span(bytes).first(length), length)) << length;
  }
}

TEST(ModelFile, a_file_cut_off_in_its_weights_says_so) {
  const auto bytes = small_model().bytes();
  const auto model = parse_model_file(bytes, bytes.size() - 1);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::invalid_request);
  EXPECT_TRUE(model.error().message.contains("cut off")) << model.error().message;
}

TEST(ModelFile, huge_counts_are_refused_without_reading_on) {
  EXPECT_TRUE(refusal(FileWriter().start(~0ULL, 0)).contains("too many"));
  EXPECT_TRUE(refusal(FileWriter().start(0, ~0ULL)).contains("too many"));
  EXPECT_TRUE(refusal(FileWriter().start(0, 1).number(~0ULL)).contains("too long"));
  for (const std::uint32_t type : {0U, 4U, 6U, 8U, 10U}) {
    EXPECT_TRUE(
        refusal(FileWriter().start(0, 1).key("a", 9).number(type).number(~0ULL)).contains("longer than the file"));
  }
}

TEST(ModelFile, impossible_tensors_are_refused) {
  const auto with = [](const std::vector<std::uint64_t>& dimensions, std::uint32_t type, std::uint64_t offset) {
    return refusal(FileWriter().start(1, 0).tensor("t", dimensions, type, offset).data(64));
  };
  EXPECT_EQ(with({16}, 0, 0), "accepted");
  EXPECT_TRUE(with({1ULL << 40, 1ULL << 40}, 0, 0).contains("impossible size"));
  EXPECT_TRUE(with({1ULL << 62}, 0, 0).contains("impossible size"));
  EXPECT_TRUE(with({16}, 2, 0).contains("whole number of blocks"));
  EXPECT_TRUE(with({16}, 0, 1).contains("not aligned"));
  EXPECT_TRUE(with({16}, 0, ~31ULL).contains("cut off"));
  EXPECT_TRUE(with({1, 1, 1, 1, 1}, 0, 0).contains("four dimensions"));
}

TEST(ModelFile, a_type_that_is_not_known_yet_reaches_to_the_next_tensor) {
  const auto model = parse(FileWriter().start(2, 0).tensor("new", {16}, 77, 0).tensor("old", {8}, 0, 64).data(96));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tensors[0].bytes, 64U);
  EXPECT_EQ(model->quantization, "type 77");
}

TEST(ModelFile, other_files_are_refused_by_name) {
  EXPECT_TRUE(refusal(FileWriter().number(0x04034b50).number(0ULL)).contains("does not start as a GGUF file"));
  EXPECT_TRUE(refusal(FileWriter().start(0, 0, 1)).contains("version 1"));
  EXPECT_TRUE(refusal(FileWriter().start(0, 0, 0x03000000)).contains("is not 2 or 3")) << "big-endian";
  EXPECT_EQ(read_model_file("/no/such/file").error().code, ErrorCode::io_failed);
  EXPECT_EQ(read_model_file("/tmp").error().code, ErrorCode::io_failed);
}

TEST(ModelFile, a_key_said_twice_is_refused) {
  EXPECT_TRUE(refusal(FileWriter().start(0, 2).number_entry("a", 1).number_entry("a", 2)).contains("twice"));
}

TEST(ModelFile, the_embedded_model_is_read_from_disk) {
  const auto model = read_model_file(MOLLY_SOURCE_DIR "/models/nano.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->architecture, "llama");
  EXPECT_EQ(model->layers, 4U);
  EXPECT_EQ(model->context_length, 1024U);
  EXPECT_GT(model->vocabulary, 1000U);
  EXPECT_FALSE(model->chat_template.empty());
  EXPECT_LE(model->data_offset + model->tensor_bytes, model->file_bytes + 31 * model->tensors.size());
}

TEST(MemoryEstimate, counts_weights_cache_and_computing) {
  const auto model = parse(small_model());
  ASSERT_TRUE(model);
  const auto estimate = estimate_memory(*model, 100);
  EXPECT_EQ(estimate.weights, model->tensor_bytes);
  // One of two layers has keys and values: 2 heads of 16 + 16 half-precision numbers for each of 100 tokens.
  EXPECT_GE(estimate.key_value_cache, 2U * 32 * 100 * 2);
  EXPECT_LE(estimate.key_value_cache, 2U * 32 * 100 * 2 + 16);
  EXPECT_GT(estimate_memory(*model, 200).total(), estimate.total());
  EXPECT_LT(estimate_memory(*model, 100, TensorType::q8_0).key_value_cache, estimate.key_value_cache);
}

TEST(MemoryEstimate, sliding_windows_bound_the_cache_of_their_layers) {
  FileWriter file;
  file.start(0, 7).string_entry("general.architecture", "g").number_entry("g.block_count", 6);
  file.number_entry("g.attention.head_count", 1).number_entry("g.embedding_length", 32);
  file.number_entry("g.attention.sliding_window", 512).number_entry("g.attention.sliding_window_pattern", 6);
  file.number_entry("g.attention.head_count_kv", 1);
  const auto model = parse(file);
  ASSERT_TRUE(model);
  const std::uint64_t token = 64 * 2;
  const auto cache = estimate_memory(*model, 100'000).key_value_cache;
  EXPECT_GE(cache, token * (100'000 + 5 * 1024));
  EXPECT_LE(cache, token * (100'000 + 5 * 1024) + 6 * 4);
}

TEST(MemoryEstimate, hostile_figures_give_a_huge_estimate_instead_of_a_small_one) {
  FileWriter file;
  file.start(0, 5).string_entry("general.architecture", "x").key("x.block_count", 10).number(~0ULL);
  file.key("x.attention.head_count", 10).number(~0ULL).key("x.embedding_length", 10).number(~0ULL);
  file.key("x.context_length", 10).number(~0ULL);
  const auto model = parse(file);
  ASSERT_TRUE(model);
  EXPECT_GT(estimate_memory(*model, 0).total(), 1ULL << 50);
}

}  // namespace
}  // namespace molly::gguf
