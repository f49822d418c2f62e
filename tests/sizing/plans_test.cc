#include <gtest/gtest.h>

#include <charconv>
#include <format>
#include <fstream>
#include <map>
#include <sstream>

#include "base/text.h"
#include "sizing/engine_plan.h"

// Runs plans.txt, which says what its lines mean.
namespace molly::sizing {
namespace {

using Words = std::map<std::string, std::string, std::less<>>;  // "cores=2" and "tied"

Words words_of(std::istringstream& line) {
  Words out;
  for (std::string word; line >> word;) {
    const std::size_t sign = word.find('=');
    out.emplace(word.substr(0, sign), sign == std::string::npos ? "" : word.substr(sign + 1));
  }
  return out;
}

std::uint64_t number(const Words& words, std::string_view name) {
  const auto found = words.find(name);
  std::uint64_t value = 0;
  if (found != words.end()) std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

std::uint64_t size(const Words& words, std::string_view name) {
  const auto found = words.find(name);
  return found == words.end() ? 0 : base::parse_size(found->second).value();
}

gguf::TensorType tensor_type(std::string_view name) {
  if (name == "f16") return gguf::TensorType::f16;
  if (name == "q8_0") return gguf::TensorType::q8_0;
  if (name == "q4_0") return gguf::TensorType::q4_0;
  EXPECT_EQ(name, "q4_k");
  return gguf::TensorType::q4_k;
}

Device device_of(const Words& words) {
  Device out{.cores = static_cast<std::uint32_t>(number(words, "cores")),
             .memory = {.total_bytes = size(words, "total"), .available_bytes = size(words, "available")},
             .accelerators = {},
             .repacked = {gguf::TensorType::q4_0, gguf::TensorType::q4_k}};
  if (words.contains("gpu"))
    out.accelerators.push_back({"Vulkan0", "a GPU", "gpu", size(words, "gpu"), size(words, "gpu")});
  return out;
}

// A header as a file of that shape would have it.
class ModelMaker {
 public:
  ModelMaker(const Words& words, gguf::TensorType type) : words_(words), type_(type) {}

  gguf::ModelFile make() {
    model_.architecture = "llama";
    keys();
    const std::uint64_t width = number(words_, "embedding");
    matrix("token_embd.weight", width, number(words_, "vocabulary"));
    if (!words_.contains("tied")) matrix("output.weight", width, number(words_, "vocabulary"));
    for (std::uint64_t layer = 0; layer < number(words_, "layers"); ++layer)
      add_layer("blk." + std::to_string(layer) + ".");
    return std::move(model_);
  }

 private:
  void keys() {
    constexpr std::pair<std::string_view, std::string_view> names[] = {
        {"layers", "block_count"},       {"embedding", "embedding_length"}, {"heads", "attention.head_count"},
        {"ff", "feed_forward_length"},   {"context", "context_length"},     {"kv_heads", "attention.head_count_kv"},
        {"head", "attention.key_length"}};
    for (const auto& [word, key] : names) model_.metadata["llama." + std::string(key)] = number(words_, word);
    model_.layers = number(words_, "layers");
    model_.heads = number(words_, "heads");
    model_.embedding_length = number(words_, "embedding");
    model_.context_length = number(words_, "context");
    model_.vocabulary = number(words_, "vocabulary");
  }

  void matrix(const std::string& name, std::uint64_t n_in, std::uint64_t n_out) {
    const auto layout = gguf::type_layout(type_).value();
    const std::uint64_t bytes = n_in * n_out / layout.elements * layout.bytes;
    model_.tensors.push_back(
        {.name = name, .dimensions = {n_in, n_out, 1, 1}, .type = static_cast<std::uint32_t>(type_), .bytes = bytes});
    model_.parameters += n_in * n_out;
    model_.tensor_bytes += bytes;
  }

  void add_layer(const std::string& prefix) {
    const std::uint64_t width = number(words_, "embedding");
    const std::uint64_t queries = number(words_, "heads") * number(words_, "head");
    const std::uint64_t keys = number(words_, "kv_heads") * number(words_, "head");
    const std::uint64_t inner = number(words_, "ff");
    matrix(prefix + "attn_q.weight", width, queries);
    matrix(prefix + "attn_k.weight", width, keys);
    matrix(prefix + "attn_v.weight", width, keys);
    matrix(prefix + "attn_output.weight", queries, width);
    matrix(prefix + "ffn_gate.weight", width, inner);
    matrix(prefix + "ffn_up.weight", width, inner);
    matrix(prefix + "ffn_down.weight", inner, width);
  }

  const Words& words_;
  gguf::TensorType type_;
  gguf::ModelFile model_;
};

EngineWishes wishes_of(const Words& words) {
  EngineWishes out{.memory_bytes = size(words, "memory"),
                   .threads = static_cast<std::uint32_t>(number(words, "threads")),
                   .context = static_cast<std::uint32_t>(number(words, "context")),
                   .parallel = static_cast<std::uint32_t>(number(words, "parallel"))};
  if (words.contains("rank")) out.adapter_rank = static_cast<std::uint32_t>(number(words, "rank"));
  if (words.contains("kv")) out.kv_type = words.at("kv") == "f16" ? NumberType::f16 : NumberType::q8_0;
  if (words.contains("pool")) out.pool_bytes = size(words, "pool");
  if (words.contains("warm")) out.warm_bytes = size(words, "warm");
  return out;
}

void expect_plan(const EnginePlan& plan, const Words& expected) {
  const Words got{{"context", std::to_string(plan.context)},    {"parallel", std::to_string(plan.parallel)},
                  {"kv", std::string(to_string(plan.kv_type))}, {"adapters", std::to_string(plan.resident_adapters)},
                  {"threads", std::to_string(plan.threads)},    {"useful", plan.useful_context ? "yes" : "no"}};
  EXPECT_EQ(plan.problem, "");
  for (const auto& [name, value] : expected) EXPECT_EQ(got.at(name), value) << name;
}

// What holds for every plan, whatever the case expects.
void expect_sound(const EnginePlan& plan, const Device& device, const EngineWishes& wishes) {
  if (!plan.fits() || wishes.pool_bytes) return;
  const std::uint64_t budget = wishes.memory_bytes > 0 ? wishes.memory_bytes : memory_for_models(device);
  EXPECT_LE(plan.memory_bytes(), budget);
  const std::uint64_t per_request = (plan.context + plan.page_tokens - 1) / plan.page_tokens;
  EXPECT_GE(plan.pages * plan.page_bytes,
            plan.parallel * per_request * plan.page_bytes + plan.resident_adapters * plan.adapter_bytes);
}

// What is passed on as said is planned again as it was: a control plane and its engine agree.
void expect_repeatable(const EnginePlan& plan, const Device& device, const gguf::ModelFile& model,
                       const EngineWishes& wishes) {
  if (!plan.fits()) return;
  EngineWishes said = wishes;
  said.threads = plan.threads;
  said.context = plan.context;
  said.parallel = plan.parallel;
  said.kv_type = plan.kv_type;
  said.pool_bytes = plan.pool_bytes();
  said.warm_bytes = plan.warm_bytes;
  EnginePlan again = plan_engine(device, model, said);
  again.useful_context = plan.useful_context;  // what was said is useful by definition
  EXPECT_EQ(again, plan);
}

class PlanFile {
 public:
  void run() {
    std::ifstream in(MOLLY_TEST_DATA "/plans.txt");
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) {
      if (text.empty() || text.starts_with('#')) continue;
      SCOPED_TRACE("plans.txt:" + std::to_string(line) + ": " + text);
      read(text);
    }
  }

  int cases() const { return cases_; }

 private:
  void read(const std::string& text) {
    std::istringstream line(text);
    std::string verb;
    line >> verb;
    if (verb == "device" || verb == "model") {
      std::string name;
      line >> name;
      (verb == "device" ? devices_ : models_)[name] = words_of(line);
    } else if (verb == "case") {
      plan_case(line);
    } else if (verb == "plan") {
      expect_plan(plan_, words_of(line));
    } else if (verb == "refused") {
      EXPECT_TRUE(plan_.problem.contains(text.substr(8))) << plan_.problem;
    } else if (verb == "recommend") {
      check_recommendation(line);
    } else {
      FAIL() << "unknown word " << verb;
    }
  }

  gguf::ModelFile model(const std::string& name, std::string_view type) const {
    return ModelMaker(models_.at(name), tensor_type(type)).make();
  }

  void plan_case(std::istringstream& line) {
    std::string name;
    std::string type;
    std::string on;
    std::string where;
    line >> name >> type >> on >> where;
    ++cases_;
    const Device device = device_of(devices_.at(where));
    const gguf::ModelFile header = model(name, type);
    const EngineWishes wishes = wishes_of(words_of(line));
    plan_ = plan_engine(device, header, wishes);
    expect_sound(plan_, device, wishes);
    expect_repeatable(plan_, device, header, wishes);
  }

  void check_recommendation(std::istringstream& line) {
    std::string on;
    std::string where;
    line >> on >> where;
    const Device device = device_of(devices_.at(where.substr(0, where.size() - 1)));
    std::vector<std::string> names;
    std::vector<Candidate> candidates;
    std::string sign = ",";
    while (sign == ",") {
      std::string name;
      std::string type;
      line >> name >> type;
      sign = type.ends_with(',') ? "," : "->";
      if (sign == ",") type.pop_back();
      const gguf::ModelFile header = model(name, type);
      const EnginePlan plan = plan_engine(device, header, {});
      names.push_back(std::format("{} {}", name, type));
      candidates.push_back({header.parameters, bits_per_weight(header), plan.fits() && plan.useful_context});
    }
    std::string expected;
    line >> sign >> std::ws;
    std::getline(line, expected);
    const auto best = recommend(candidates);
    EXPECT_EQ(best ? names[*best] : "nothing", expected);
  }

  std::map<std::string, Words, std::less<>> devices_;
  std::map<std::string, Words, std::less<>> models_;
  EnginePlan plan_;
  int cases_ = 0;
};

TEST(Plans, every_case_of_the_text_file_holds) {
  PlanFile file;
  file.run();
  EXPECT_GE(file.cases(), 12);
}

}  // namespace
}  // namespace molly::sizing
