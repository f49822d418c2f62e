#include <gmock/gmock.h>

#include <fstream>

#include "../temporary_folder.h"
#include "adapters_file_writer.h"
#include "engine/adapters/image.h"
#include "engine/adapters/lora_formats.h"
#include "engine/adapters/peft_config.h"

namespace molly::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string front = "base_model.model.model.layers.";

std::string refusal_of(const std::vector<NamedMatrix>& matrices, std::string_view config = small_peft_config) {
  const auto file = parse_lora_peft(bytes_in_memory(safetensors(matrices)), config, small_base());
  if (file) return "accepted";
  EXPECT_EQ(file.error().code, ErrorCode::invalid_request);
  return file.error().message;
}

// B of a tensor as it comes to lie in the pool: rank by rank.
std::vector<float> b_in_image(const LoraFile& file, std::size_t number) {
  const auto image = make_image(file, FactorType::f16, 1024).value();
  const AdapterImage::Part& part = image.parts[number];
  std::vector<float> all;
  for (std::uint32_t rank = 0; rank < part.rank; ++rank) {
    const auto& [page, offset] = image.rows[part.first_row + part.rank + rank];
    std::vector<float> row(file.tensors[number].n_out());
    decode(NumberFormat::f16,
           {reinterpret_cast<const std::uint8_t*>(&image.bytes[page * image.page_bytes + offset]), row.size() * 2},
           row);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

// The small configuration with one more member.
std::string config_with(const std::string& member) {
  std::string config(small_peft_config);
  config.insert(config.size() - 1, "," + member);
  return config;
}

TEST(PeftAdapter, gives_every_factor_and_the_scale_of_the_configuration) {
  const auto file =
      parse_lora_peft(bytes_in_memory(safetensors(small_peft_matrices())), small_peft_config, small_base());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->base, "some/base");
  ASSERT_EQ(file->tensors.size(), 2U);
  EXPECT_EQ(file->tensors[0].projection, Projection::attn_q);
  EXPECT_FLOAT_EQ(file->tensors[0].scale, 2);
  EXPECT_EQ(numbers_of(*file, file->tensors[0].a), counting(16));
  EXPECT_EQ(numbers_of(*file, file->tensors[0].b), counting(16));
  EXPECT_EQ(file->tensors[1].projection, Projection::ffn_down);
  EXPECT_EQ(file->tensors[1].layer, 1U);
}

TEST(PeftAdapter, knows_every_projection) {
  std::vector<NamedMatrix> matrices;
  const BaseShape base = small_base();
  const char* modules[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
  for (std::size_t i = 0; i < projection_count; ++i) {
    matrices.push_back(matrix(front + "1." + modules[i] + ".lora_A.weight", 2, base.projections[i].n_in));
    matrices.push_back(matrix(front + "1." + modules[i] + ".lora_B.weight", base.projections[i].n_out, 2));
  }
  const auto file = parse_lora_peft(bytes_in_memory(safetensors(matrices)), small_peft_config, base);
  ASSERT_TRUE(file) << file.error().message;
  for (std::size_t i = 0; i < projection_count; ++i) EXPECT_EQ(file->tensors[i].projection, static_cast<Projection>(i));
}

TEST(PeftAdapter, interleaves_the_halves_of_each_head_where_the_base_does) {
  BaseShape base = small_base();
  base.permuted_heads = 2;
  base.permuted_heads_kv = 1;
  const std::vector<NamedMatrix> matrices = {
      {front + "0.self_attn.q_proj.lora_A.weight", 1, 8, counting(8)},
      {front + "0.self_attn.q_proj.lora_B.weight", 8, 1, {0, 1, 2, 3, 4, 5, 6, 7}},
      {front + "0.self_attn.k_proj.lora_A.weight", 1, 8, counting(8)},
      {front + "0.self_attn.k_proj.lora_B.weight", 4, 1, {0, 1, 2, 3}},
      {front + "0.self_attn.v_proj.lora_A.weight", 1, 8, counting(8)},
      {front + "0.self_attn.v_proj.lora_B.weight", 4, 1, {0, 1, 2, 3}}};
  const auto file = parse_lora_peft(bytes_in_memory(safetensors(matrices)), R"({"r":1,"lora_alpha":1})", base);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(b_in_image(*file, 0), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(b_in_image(*file, 1), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(b_in_image(*file, 2), ElementsAre(0, 1, 2, 3)) << "values are not rotated";
}

TEST(PeftAdapter, whole_rows_move_when_a_head_is_interleaved) {
  BaseShape base = small_base();
  base.permuted_heads_kv = 1;
  const std::vector<NamedMatrix> matrices = {
      {front + "0.self_attn.k_proj.lora_A.weight", 2, 8, counting(16)},
      {front + "0.self_attn.k_proj.lora_B.weight", 4, 2, {0, 1, 10, 11, 20, 21, 30, 31}}};
  const auto file = parse_lora_peft(bytes_in_memory(safetensors(matrices)), small_peft_config, base);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(b_in_image(*file, 0), ElementsAre(0, 20, 10, 30, 1, 21, 11, 31)) << "rank by rank";
}

TEST(PeftAdapter, refuses_tensors_that_it_cannot_adapt) {
  for (const char* name :
       {"base_model.model.lm_head.lora_A.weight", "base_model.model.model.embed_tokens.lora_embedding_A",
        "base_model.model.model.layers.0.self_attn.qkv_proj.lora_A.weight",
        "base_model.model.model.layers.0.self_attn.q_proj.lora_B.bias", "base_model.model.model.norm.weight"}) {
    EXPECT_EQ(refusal_of({matrix(name, 2, 8)}), "adapters of the tensor '" + std::string(name) + "' are not supported");
  }
  EXPECT_THAT(refusal_of({matrix(front + "0.self_attn.q_proj.lora_magnitude_vector", 1, 8)}), HasSubstr("DoRA"));
}

TEST(PeftAdapter, refuses_ranks_that_the_configuration_does_not_have) {
  EXPECT_EQ(refusal_of(small_peft_matrices(), R"({"r":8,"lora_alpha":16})"),
            "blk.0.attn_q: the adapter's factors have rank 2, adapter_config.json says 8");
}

TEST(PeftConfig, a_pattern_gives_a_module_its_own_rank_and_alpha) {
  const auto config =
      parse_peft_config(R"({"r":8,"lora_alpha":16,"rank_pattern":{"q_proj":4,"^model.layers.0.mlp.up_proj":2},)"
                        R"("alpha_pattern":{"layers.1.self_attn.q_proj":1}})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rank_of("model.layers.0.self_attn.q_proj"), 4U);
  EXPECT_EQ(config->rank_of("model.layers.0.self_attn.k_proj"), 8U);
  EXPECT_EQ(config->rank_of("model.layers.0.mlp.up_proj"), 2U);
  EXPECT_EQ(config->rank_of("model.layers.1.mlp.up_proj"), 8U);
  EXPECT_DOUBLE_EQ(config->scale_of("model.layers.0.self_attn.q_proj", 4), 4);
  EXPECT_DOUBLE_EQ(config->scale_of("model.layers.1.self_attn.q_proj", 4), 0.25);
  EXPECT_DOUBLE_EQ(config->scale_of("model.layers.11.self_attn.q_proj", 4), 4) << "layer 11 does not end in layer 1";
}

TEST(PeftConfig, rank_stabilized_adapters_scale_with_the_root_of_the_rank) {
  const auto config = parse_peft_config(R"({"r":16,"lora_alpha":8,"use_rslora":true})");
  ASSERT_TRUE(config);
  EXPECT_DOUBLE_EQ(config->scale_of("any", 16), 2);
}

TEST(PeftConfig, says_what_is_not_supported) {
  const auto refusal = [](const std::string& member) {
    const auto config = parse_peft_config(config_with(member));
    return config ? "accepted" : config.error().message;
  };
  EXPECT_EQ(refusal(R"("unknown":{"a":[1]})"), "accepted");
  EXPECT_EQ(refusal(R"("layer_replication":null)"), "accepted");
  EXPECT_THAT(refusal(R"("use_qalora":true)"), HasSubstr("QALoRA"));
  EXPECT_THAT(refusal(R"("lora_bias":true)"), HasSubstr("lora_bias"));
  EXPECT_THAT(refusal(R"("fan_in_fan_out":true)"), HasSubstr("fan_in_fan_out"));
  EXPECT_THAT(refusal(R"("layer_replication":[[0,1]])"), HasSubstr("repeats layers"));
  EXPECT_THAT(refusal(R"("alora_invocation_tokens":[1,2])"), HasSubstr("activated LoRA"));
  EXPECT_THAT(refusal(R"("rank_pattern":{"layers\\.(0|1)\\..*":4})"), HasSubstr("regular expression"));
  EXPECT_THAT(refusal(R"("r":3)"), HasSubstr("twice"));
  const auto whole = [](std::string_view text) {
    const auto config = parse_peft_config(text);
    return config ? "accepted" : config.error().message;
  };
  EXPECT_THAT(whole(R"({"r":1,"lora_alpha":1,"use_dora":true})"), HasSubstr("DoRA"));
  EXPECT_THAT(whole(R"({"r":1,"lora_alpha":1,"bias":"all"})"), HasSubstr("trains biases"));
  EXPECT_THAT(whole(R"({"r":1,"lora_alpha":1,"modules_to_save":["lm_head"]})"), HasSubstr("modules_to_save"));
  EXPECT_EQ(whole(R"({"r":1,"lora_alpha":1,"modules_to_save":[]})"), "accepted");
  EXPECT_THAT(whole(R"({"r":1,"lora_alpha":1,"peft_type":"IA3"})"), HasSubstr("'IA3'"));
  EXPECT_THAT(whole(R"({"lora_alpha":1})"), HasSubstr("rank"));
  EXPECT_THAT(whole(R"({"r":1})"), HasSubstr("lora_alpha"));
  EXPECT_THAT(whole(R"({"r":1024,"lora_alpha":1})"), HasSubstr("r must be at most 512"));
  EXPECT_THAT(whole("{"), HasSubstr("adapter_config.json is wrong"));
}

class ReadLoraFile : public testing::Test {
 protected:
  void write(const std::string& name, std::span<const std::uint8_t> bytes) {
    std::ofstream(folder.path() / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void write_config() {
    write("adapter_config.json",
          {reinterpret_cast<const std::uint8_t*>(small_peft_config.data()), small_peft_config.size()});
  }

  TemporaryFolder folder;
};

TEST_F(ReadLoraFile, reads_each_form_that_people_have) {
  write("a.gguf", small_gguf_adapter().bytes());
  write("adapter_model.safetensors", safetensors(small_peft_matrices()));
  write_config();
  for (const char* name : {"a.gguf", "adapter_model.safetensors", ""}) {
    const auto file = read_lora_file(folder.path() / name, small_base());
    EXPECT_TRUE(file) << file.error().message;
  }
}

TEST_F(ReadLoraFile, names_the_file_that_it_cannot_read) {
  write("a.gguf", std::vector<std::uint8_t>{1, 2, 3});
  write("a.bin", {});
  write("alone.safetensors", safetensors(small_peft_matrices()));
  const auto error = [&](const char* name) {
    const auto file = read_lora_file(folder.path() / name, small_base());
    return file ? Error{} : file.error();
  };
  EXPECT_EQ(error("a.gguf").code, ErrorCode::invalid_request);
  EXPECT_THAT(error("a.gguf").message, HasSubstr((folder.path() / "a.gguf").string() + ": "));
  EXPECT_THAT(error("a.bin").message, HasSubstr("is a .gguf file"));
  EXPECT_EQ(error("none.gguf").code, ErrorCode::io_failed);
  EXPECT_THAT(error("alone.safetensors").message, HasSubstr("adapter_config.json"));
  EXPECT_EQ(error("").code, ErrorCode::io_failed) << "a folder without an adapter";
}

}  // namespace
}  // namespace molly::engine
