#include "engine/serve.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <filesystem>

#include "base/os/file.h"
#include "base/os/process.h"
#include "base/os/signals.h"
#include "base/secret.h"
#include "base/text.h"
#include "engine/service.h"
#include "engine/wishes.h"
#include "sizing/engine_plan.h"

namespace molly::apps {
namespace {

struct ServeOptions {
  engine::EngineOptions engine;
  std::string listen;
  std::filesystem::path key_file;
  WishOptions wishes;
  std::string draft_pool = "64MiB";
  bool spin = false;
  std::uint64_t loaded_bytes = 0;  // resident when the model is loaded, as planned
};

Result<base::Secret> read_key(const std::filesystem::path& file) {
  if (file.empty()) return base::Secret();
  constexpr std::uint64_t longest_key = 4096;
  auto text = base::read_file(file, longest_key);
  if (!text) return std::unexpected(text.error());
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return base::Secret::take(*text);
}

void use_plan(const sizing::EnginePlan& plan, engine::EngineOptions& options) {
  options.backend.threads = plan.threads;
  options.pool_bytes = plan.pool_bytes();
  options.page_tokens = plan.page_tokens;
  options.kv_type = plan.kv_type == sizing::NumberType::q8_0 ? engine::KvType::q8_0 : engine::KvType::f16;
  options.warm_bytes = plan.warm_bytes;
  options.schedule.context_length = plan.context;
  options.schedule.max_running = plan.parallel;
}

// A model that the engine does not know it refuses by itself; a pool that was asked for is tried as it is.
Result<void> plan_for_device(ServeOptions& options) {
  const sizing::EngineWishes wishes = wishes_of(options.wishes);
  const auto header = gguf::read_model_file(options.engine.model);
  if (!header) return std::unexpected(header.error());
  const auto plan = sizing::plan_engine(sizing::this_device(), *header, wishes);
  options.engine.adapter_type =
      wishes.adapter_type == sizing::NumberType::q8_0 ? engine::FactorType::q8_0 : engine::FactorType::f16;
  if (plan.has_figures()) use_plan(plan, options.engine);
  options.loaded_bytes = plan.weights.copied;
  if (wishes.pool_bytes) options.engine.pool_bytes = *wishes.pool_bytes;
  const bool lacks_memory = plan.missing_bytes > 0 && !wishes.pool_bytes;
  if (lacks_memory)
    return failure(ErrorCode::overloaded, options.engine.model.string() + ": " + plan.problem, "memory");
  return {};
}

Result<void> serve(ServeOptions options) {
  base::disable_core_dumps();
  base::ignore_broken_pipe();
  spdlog::set_default_logger(spdlog::stderr_color_mt("molly-engine"));
  if (auto chosen = choose_cpus(options.wishes); !chosen) return chosen;
  if (auto planned = plan_for_device(options); !planned) return planned;
  options.engine.draft_pool_bytes = *base::parse_size(options.draft_pool);
  options.engine.backend.waiting = options.spin ? engine::Waiting::spin : engine::Waiting::sleep;
  auto key = read_key(options.key_file);
  if (!key) return std::unexpected(key.error());
  return Service(options.engine, std::move(*key), options.loaded_bytes).run(options.listen);
}

}  // namespace

void add_engine_serve(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "serve a model over HTTP");
  command->add_option("--model", options->engine.model, "GGUF file of the base")->required()->check(CLI::ExistingFile);
  command->add_option("--alias", options->engine.name, "name of the model in answers; default: the file's name");
  command->add_option("--listen", options->listen, "unix:/path/of.sock, or 127.0.0.1:PORT")->required();
  command->add_option("--key-file", options->key_file, "file with the key that callers must send")
      ->check(CLI::ExistingFile);
  add_wishes(*command, options->wishes);
  command->add_option("--pool", options->wishes.pool, "memory for keys, values and hot adapters")->check(is_size());
  command->add_option("--warm", options->wishes.warm, "memory for adapters that are not in the pool")->check(is_size());
  command
      ->add_option("--draft-model", options->engine.draft_model,
                   "GGUF file of a small model with the same vocabulary, to guess what the model says")
      ->check(CLI::ExistingFile);
  command->add_option("--draft-pool", options->draft_pool, "memory for keys and values of the draft model")
      ->check(is_size())
      ->capture_default_str();
  command->footer("What is not said is planned for this device: see 'molly-engine plan'.");
  command->add_flag("--spin", options->spin,
                    "threads spin while they wait: only where no other program needs the cores");
  command->callback([options, &exit_code] {
    if (const auto done = serve(*options); !done) {
      spdlog::error("{}", done.error().message);
      exit_code = 1;
    }
  });
}

}  // namespace molly::apps
