#include "engine/wishes.h"

#include "base/os/processors.h"
#include "base/text.h"

namespace molly::apps {
namespace {

std::optional<std::uint64_t> size_of(const std::string& text) {
  return text.empty() ? std::nullopt : base::parse_size(text);
}

sizing::NumberType number_type(const std::string& text) {
  return text == "q8_0" ? sizing::NumberType::q8_0 : sizing::NumberType::f16;
}

CLI::Validator is_cpu_list() {
  return {[](std::string& text) {
            const auto chosen = base::choose_processors(text);
            return chosen ? std::string() : chosen.error().message;
          },
          "LIST"};
}

}  // namespace

CLI::Validator is_size() {
  return {[](std::string& text) {
            return base::parse_size(text) ? std::string() : "'" + text + "' is no size: write 512MiB";
          },
          "SIZE"};
}

void add_wishes(CLI::App& command, WishOptions& options) {
  sizing::EngineWishes& wishes = options.wishes;
  command.add_option("--memory", options.memory, "memory for everything; default: 70 % of what is available")
      ->check(is_size());
  command.add_option("--threads", wishes.threads, "threads that compute; default: one for each core")
      ->check(CLI::Range(1, 1024));
  command.add_option("--cpus", options.cpus, "run on these processors only, for example 0,2-3")->check(is_cpu_list());
  command.add_option("--context", wishes.context, "tokens of each request")->check(CLI::Range(16, 1 << 30));
  command.add_option("--parallel", wishes.parallel, "requests at a time")->check(CLI::Range(1, 1024));
  command.add_option("--kv-type", options.kv_type, "numbers of keys and values")->check(CLI::IsMember({"f16", "q8_0"}));
  command.add_option("--page-tokens", wishes.page_tokens, "tokens in a page")
      ->check(CLI::IsMember({16, 32, 64, 128}))
      ->capture_default_str();
  command.add_option("--adapter-type", options.adapter_type, "numbers of adapters")
      ->check(CLI::IsMember({"f16", "q8_0"}))
      ->capture_default_str();
  command.add_option("--adapter-rank", wishes.adapter_rank, "rank that room is planned for")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
}

Result<void> choose_cpus(const WishOptions& options) {
  if (options.cpus.empty()) return {};
  const auto chosen = base::choose_processors(options.cpus);
  if (!chosen) return std::unexpected(chosen.error());
  return base::run_only_on(*chosen);
}

sizing::EngineWishes wishes_of(const WishOptions& options) {
  sizing::EngineWishes out = options.wishes;
  out.memory_bytes = size_of(options.memory).value_or(0);
  out.pool_bytes = size_of(options.pool);
  out.warm_bytes = size_of(options.warm);
  if (!options.kv_type.empty()) out.kv_type = number_type(options.kv_type);
  out.adapter_type = number_type(options.adapter_type);
  return out;
}

}  // namespace molly::apps
