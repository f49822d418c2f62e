#include "engine/serve.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>

#include "base/os/file.h"
#include "base/os/process.h"
#include "base/os/signals.h"
#include "base/os/socket.h"
#include "base/secret.h"
#include "base/text.h"
#include "engine/service/api.h"
#include "engine/service/engine.h"
#include "http/server.h"

namespace molly::apps {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds drain_poll{20};

struct ServeOptions {
  engine::EngineOptions engine;
  std::string listen;
  std::filesystem::path key_file;
  std::string pool = "256MiB";
  std::string warm = "512MiB";
  std::string draft_pool = "64MiB";
  std::string kv_type = "f16";
  std::string adapter_type = "f16";
  bool spin = false;
};

CLI::Validator is_size() {
  return {[](std::string& text) {
            return base::parse_size(text) ? std::string() : "'" + text + "' is no size: write 512MiB";
          },
          "SIZE"};
}

Result<base::Secret> read_key(const std::filesystem::path& file) {
  if (file.empty()) return base::Secret();
  constexpr std::uint64_t longest_key = 4096;
  auto text = base::read_file(file, longest_key);
  if (!text) return std::unexpected(text.error());
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return base::Secret::take(*text);
}

// Serves until a signal, then lets what runs come to its end for as long as the second signal allows.
class Service {
 public:
  Service(engine::Engine& engine, base::Secret key)
      : api_(engine, std::move(key)), signals_(context_), timer_(context_) {
    http::ServerOptions options;
    options.handler = [this](http::Exchange& exchange) { return api_.handle(exchange); };
    options.on_fault = [](std::string_view what) { spdlog::error("this is a bug: {}", what); };
    server_ = std::make_unique<http::Server>(context_, std::move(options));
    for (const int signal : {SIGTERM, SIGINT}) signals_.add(signal);
  }

  Result<void> run(const std::string& address) {
    auto listening = base::listen_on(address);
    if (!listening) return std::unexpected(listening.error());
    if (auto accepts = server_->listen(listening->release()); !accepts) return accepts;
    wait_for_signal();
    context_.run();
    return {};
  }

 private:
  void wait_for_signal() {
    signals_.async_wait([this](boost::system::error_code failed, int) {
      if (failed) return;
      if (std::exchange(draining_, true)) return context_.stop();
      server_->begin_drain();
      wait_for_signal();
      stop_when_done();
    });
  }

  void stop_when_done() {
    if (server_->active() == 0) return context_.stop();
    timer_.expires_after(drain_poll);
    timer_.async_wait([this](boost::system::error_code failed) {
      if (!failed) stop_when_done();
    });
  }

  asio::io_context context_{1};
  engine::Api api_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  std::unique_ptr<http::Server> server_;
  bool draining_ = false;
};

Result<void> serve(ServeOptions options) {
  base::disable_core_dumps();
  base::ignore_broken_pipe();
  spdlog::set_default_logger(spdlog::stderr_color_mt("molly-engine"));
  options.engine.pool_bytes = *base::parse_size(options.pool);
  options.engine.warm_bytes = *base::parse_size(options.warm);
  options.engine.draft_pool_bytes = *base::parse_size(options.draft_pool);
  options.engine.kv_type = options.kv_type == "q8_0" ? engine::KvType::q8_0 : engine::KvType::f16;
  options.engine.adapter_type = options.adapter_type == "q8_0" ? engine::FactorType::q8_0 : engine::FactorType::f16;
  options.engine.backend.waiting = options.spin ? engine::Waiting::spin : engine::Waiting::sleep;
  auto key = read_key(options.key_file);
  if (!key) return std::unexpected(key.error());
  auto engine = engine::Engine::start(options.engine);
  if (!engine) return std::unexpected(engine.error());
  spdlog::info("{} is ready on {}: {} pages of {}", (*engine)->options().name, options.listen,
               (*engine)->status().pages, base::human_size((*engine)->status().page_bytes));
  return Service(**engine, std::move(*key)).run(options.listen);
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
  command->add_option("--threads", options->engine.backend.threads, "0: one for each core")->capture_default_str();
  command->add_option("--pool", options->pool, "memory for keys, values and hot adapters")
      ->check(is_size())
      ->capture_default_str();
  command->add_option("--warm", options->warm, "memory for adapters that are not in the pool")
      ->check(is_size())
      ->capture_default_str();
  command
      ->add_option("--draft-model", options->engine.draft_model,
                   "GGUF file of a small model with the same vocabulary, to guess what the model says")
      ->check(CLI::ExistingFile);
  command->add_option("--draft-pool", options->draft_pool, "memory for keys and values of the draft model")
      ->check(is_size())
      ->capture_default_str();
  command->add_option("--page-tokens", options->engine.page_tokens, "tokens in a page")
      ->check(CLI::IsMember({16, 32, 64, 128}))
      ->capture_default_str();
  command->add_option("--context", options->engine.schedule.context_length, "longest sequence, tokens")
      ->capture_default_str();
  command->add_option("--parallel", options->engine.schedule.max_running, "sequences at a time")->capture_default_str();
  command->add_option("--kv-type", options->kv_type)->check(CLI::IsMember({"f16", "q8_0"}))->capture_default_str();
  command->add_option("--adapter-type", options->adapter_type)
      ->check(CLI::IsMember({"f16", "q8_0"}))
      ->capture_default_str();
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
