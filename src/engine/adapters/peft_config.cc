#include "engine/adapters/peft_config.h"

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "engine/adapters/factor_pairs.h"
#include "wire/json_reader.h"

namespace molly::engine {
namespace {

using wire::JsonReader;

constexpr std::size_t max_patterns = 4096;

// PEFT takes keys of patterns for regular expressions that match a module's whole name or its end after a dot. Names,
// with ^ for "the whole", are what its own tools write; a real expression from a file is not run.
bool is_plain_name(std::string_view pattern) {
  if (pattern.starts_with('^')) pattern.remove_prefix(1);
  return !pattern.empty() && pattern.find_first_of("^$*+?()[]{}|\\") == std::string_view::npos;
}

bool fits(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with('^')) return module == pattern.substr(1);
  if (!module.ends_with(pattern)) return false;
  return module.size() == pattern.size() || module[module.size() - pattern.size() - 1] == '.';
}

template <class Value>
Value first_fit(const PeftConfig::Pattern<Value>& patterns, std::string_view module, Value otherwise) {
  for (const auto& [pattern, value] : patterns) {
    if (fits(pattern, module)) return value;
  }
  return otherwise;
}

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view text) : json_(text) {}

  Result<PeftConfig> read() {
    json_.object([&](std::string_view key) { read_member(key); });
    json_.expect_end();
    if (!json_.ok()) return refusal("adapter_config.json is wrong: " + shown(json_.path()) + " " + json_.problem());
    if (!unsupported_.empty()) return refusal(unsupported_);
    if (!seen_.contains("r")) return refusal("adapter_config.json does not say the rank (r)");
    if (!seen_.contains("lora_alpha")) return refusal("adapter_config.json does not say lora_alpha");
    return std::move(config_);
  }

 private:
  void read_member(std::string_view key) {
    if (!seen_.emplace(key).second) return json_.fail("is there twice");
    static const std::map<std::string_view, void (ConfigReader::*)()> members{
        {"peft_type", &ConfigReader::read_type},
        {"r", &ConfigReader::read_rank},
        {"lora_alpha", &ConfigReader::read_alpha},
        {"use_rslora", &ConfigReader::read_rank_stabilized},
        {"rank_pattern", &ConfigReader::read_rank_pattern},
        {"alpha_pattern", &ConfigReader::read_alpha_pattern},
        {"base_model_name_or_path", &ConfigReader::read_base},
        {"bias", &ConfigReader::read_bias},
        {"modules_to_save", &ConfigReader::read_modules_to_save},
        {"use_dora", &ConfigReader::refuse_dora},
        {"use_qalora", &ConfigReader::refuse_qalora},
        {"lora_bias", &ConfigReader::refuse_lora_bias},
        {"fan_in_fan_out", &ConfigReader::refuse_fan_in_fan_out},
        {"layer_replication", &ConfigReader::refuse_layer_replication},
        {"alora_invocation_tokens", &ConfigReader::refuse_activated},
    };
    const auto found = members.find(key);
    if (found == members.end() || json_.at_null()) return json_.skip();
    (this->*found->second)();
  }

  void read_type() {
    const auto type = json_.string();
    if (type != "LORA") unsupported("adapters of type '" + shown(type) + "' are not supported, only LORA");
  }
  void read_rank() { config_.rank = rank(); }
  void read_alpha() { config_.alpha = json_.number().value; }
  void read_rank_stabilized() { config_.rank_stabilized = json_.boolean(); }
  void read_base() { config_.base = json_.string(); }
  void read_rank_pattern() {
    read_pattern<std::uint32_t>(config_.rank_pattern, [&] { return rank(); });
  }
  void read_alpha_pattern() {
    read_pattern<double>(config_.alpha_pattern, [&] { return json_.number().value; });
  }

  void read_bias() {
    if (json_.string() != "none") unsupported("the adapter trains biases, which is not supported: bias must be 'none'");
  }
  void read_modules_to_save() {
    if (!json_.at_empty()) {
      unsupported(
          "the adapter replaces whole modules (modules_to_save), which is not supported: only low-rank factors");
    }
    json_.skip();
  }
  void refuse_layer_replication() {
    if (!json_.at_empty()) unsupported("the adapter repeats layers (layer_replication), which is not supported");
    json_.skip();
  }
  void refuse_activated() {
    if (!json_.at_empty()) unsupported("activated LoRA (alora_invocation_tokens) is not supported");
    json_.skip();
  }
  void refuse_dora() { refuse_if_true("DoRA (use_dora) is not supported: it scales the base's own columns"); }
  void refuse_qalora() { refuse_if_true("QALoRA (use_qalora) is not supported"); }
  void refuse_lora_bias() { refuse_if_true("biases of factors (lora_bias) are not supported"); }
  void refuse_fan_in_fan_out() { refuse_if_true("transposed base weights (fan_in_fan_out) are not supported"); }

  void refuse_if_true(std::string sentence) {
    if (json_.boolean()) unsupported(std::move(sentence));
  }

  void unsupported(std::string sentence) {
    if (unsupported_.empty()) unsupported_ = std::move(sentence);
  }

  std::uint32_t rank() { return static_cast<std::uint32_t>(json_.unsigned_integer(max_rank)); }

  template <class Value>
  void read_pattern(PeftConfig::Pattern<Value>& into, const std::function<Value()>& read_value) {
    json_.object([&](std::string_view pattern) {
      if (into.size() == max_patterns) return json_.fail("is one pattern too many");
      if (!is_plain_name(pattern)) {
        unsupported("the pattern '" + shown(pattern) + "' is a regular expression; only module names are supported");
      }
      into.emplace_back(pattern, read_value());
    });
  }

  JsonReader json_;
  PeftConfig config_;
  std::set<std::string, std::less<>> seen_;
  std::string unsupported_;
};

}  // namespace

std::uint32_t PeftConfig::rank_of(std::string_view module) const { return first_fit(rank_pattern, module, rank); }

double PeftConfig::scale_of(std::string_view module, std::uint32_t actual_rank) const {
  const double divisor = rank_stabilized ? std::sqrt(actual_rank) : actual_rank;
  return first_fit(alpha_pattern, module, alpha) / divisor;
}

Result<PeftConfig> parse_peft_config(std::string_view json) { return ConfigReader(json).read(); }

}  // namespace molly::engine
