#include "control_plane/control_plane.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <iostream>

#include "audit/log.h"
#include "base/json_writer.h"
#include "base/os/file.h"
#include "base/os/process.h"
#include "base/os/signals.h"
#include "base/os/socket.h"
#include "base/parent/parent_client.h"
#include "commands/opened.h"
#include "config/watcher.h"
#include "control_plane/configuration.h"
#include "control_plane/listening.h"
#include "control_plane/network_thread.h"
#include "control_plane/status.h"
#include "control_plane/welcome.h"

namespace molly::apps {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds drain_poll{50};
constexpr std::chrono::milliseconds final_flush{500};
constexpr std::chrono::milliseconds lock_poll{10};
constexpr std::chrono::seconds record_patience{90};

std::filesystem::path llama_server(const targets::ModelSettings& settings) {
  const auto found = base::find_program(settings.server.string());
  return found ? *found : settings.server;
}

void set_up_log(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("molly");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(level));
}

// Opens what another process may still hold locked (ErrorCode::conflict), trying again until `give_up`.
template <class Open>
asio::awaitable<std::invoke_result_t<Open>> open_unlocked(Open open, std::chrono::steady_clock::time_point give_up) {
  asio::steady_timer wait(co_await asio::this_coro::executor);
  auto opened = open();
  while (!opened && opened.error().code == ErrorCode::conflict && std::chrono::steady_clock::now() < give_up) {
    wait.expires_after(lock_poll);
    co_await wait.async_wait(asio::use_awaitable);
    opened = open();
  }
  co_return opened;
}

struct Listener {
  base::FileDescriptor descriptor;
  bool is_unix = false;
};

class ControlPlane {
 public:
  explicit ControlPlane(ControlPlaneOptions options) : options_(std::move(options)), main_(1), signals_(main_) {}

  Result<void> open();
  int run();

 private:
  asio::awaitable<Result<void>> open_records();
  void record_policy();
  void start_supervisor(const targets::ModelSettings& settings);
  Result<void> apply_configuration();
  Result<Settings> load_settings(const std::vector<std::string>& model_names);
  Result<void> refuse_open_doors(const server::ServerSettings& settings) const;
  Result<void> start_network();
  void prepare_models(const ManagedModels& managed);
  void reload();
  void watch();
  void wait_for_signal();
  void drain();
  void finish_drain();
  void write_address() const;
  std::string http_url() const;
  void welcome();
  asio::awaitable<void> start();
  asio::awaitable<Result<void>> open_listeners();
  asio::awaitable<void> adopt_and_preload();
  server::Administration administration();

  ControlPlaneOptions options_;
  asio::io_context main_;
  asio::signal_set signals_;
  std::unique_ptr<Opened> opened_;
  std::unique_ptr<store::Connection> reader_;
  std::unique_ptr<audit::Log> audit_;
  std::unique_ptr<traces::Traces> traces_;
  std::unique_ptr<base::ParentClient> parent_;
  // Looked at once: plans that follow every change of free memory would restart models at each reload.
  const sizing::Device device_ = device_for_models();
  std::unique_ptr<targets::Supervisor> supervisor_;
  std::optional<config::Live<pipeline::Runtime>> runtime_;
  std::optional<config::Live<server::Endpoints::Limits>> limits_;
  std::optional<pipeline::Services> services_;
  std::optional<server::Metrics> metrics_;
  std::unique_ptr<server::Endpoints> endpoints_;
  std::vector<Listener> listeners_;
  std::vector<std::unique_ptr<NetworkThread>> threads_;
  std::unique_ptr<config::Watcher> watcher_;
  std::filesystem::path config_path_;
  server::ServerSettings server_settings_;
  traces::Settings trace_settings_;
  egress::PlainLoopback plain_loopback_ = egress::PlainLoopback::refused;
  std::shared_ptr<http::ConnectionCount> connections_ = std::make_shared<http::ConnectionCount>();
  std::vector<std::string> managed_names_;
  config::Live<std::string> problem_{std::string()};  // why the last reload was refused
  std::unique_ptr<asio::steady_timer> drain_timer_;
  std::chrono::steady_clock::time_point drain_until_;
  bool draining_ = false;
  bool interrupted_ = false;
  int exit_code_ = 0;
};

Result<void> ControlPlane::open() {
  if (auto opened = Opened::open(Globals{.config = options_.config, .data = options_.data}); opened) {
    opened_ = std::move(*opened);
  } else {
    return std::unexpected(opened.error());
  }
  auto reader = opened_->database().reader();
  if (!reader) return std::unexpected(reader.error());
  reader_ = std::make_unique<store::Connection>(std::move(*reader));
  parent_ = std::make_unique<base::ParentClient>(main_.get_executor(),
                                                 base::FileDescriptor(options_.inherited.parent_socket));
  parent_->on_lost([this] {
    spdlog::error("the parent process is gone; stopping");
    drain();
  });
  return apply_configuration();
}

// A control plane that we replace holds the locks of log and records until its last request is done.
asio::awaitable<Result<void>> ControlPlane::open_records() {
  const auto give_up = std::chrono::steady_clock::now() + record_patience;
  auto log = co_await open_unlocked([this] { return audit::Log::open(opened_->folder().audit()); }, give_up);
  if (log) {
    audit_ = std::move(*log);
  } else {
    spdlog::error("the audit log cannot be written, so T2 and T3 are refused: {}", log.error().message);
    audit_ = audit::Log::unavailable(log.error());
  }
  auto traces = co_await open_unlocked(
      [this] { return traces::Traces::open(opened_->folder().traces(), trace_settings_); }, give_up);
  if (!traces) co_return std::unexpected(traces.error());
  traces_ = std::move(*traces);
  record_policy();
  co_return Result<void>{};
}

void ControlPlane::record_policy() {
  audit::Record loaded{.kind = audit::Kind::policy_loaded};
  loaded.policy = runtime_->snapshot()->engine->digest();
  loaded.payload = loaded.policy;
  if (auto written = audit_->append(loaded); !written) spdlog::warn("audit: {}", written.error().message);
  traces_->apply(trace_settings_);
}

Result<Settings> ControlPlane::load_settings(const std::vector<std::string>& model_names) {
  auto found = config::find_config(options_.config);
  if (!found) return std::unexpected(found.error());
  config_path_ = found->path;
  auto settings = read_settings(found->document, model_names);
  if (!settings) return settings;
  if (auto safe = refuse_open_doors(settings->server); !safe) return std::unexpected(safe.error());
  return settings;
}

// Loopback only until a key exists.
Result<void> ControlPlane::refuse_open_doors(const server::ServerSettings& settings) const {
  if (opened_->keys().any_key_exists()) return {};
  for (const std::string& text : options_.listen.empty() ? settings.listen : options_.listen) {
    const auto address = server::parse_address(text);
    if (address && !server::is_loopback(address->host)) {
      return failure(ErrorCode::config_invalid,
                     "'" + text +
                         "' is reachable from other machines, but no key exists: make one first with 'molly keys "
                         "create LABEL', or listen on 127.0.0.1 only",
                     "server.listen");
    }
  }
  return {};
}

Result<void> ControlPlane::apply_configuration() {
  const auto models = device_models(*reader_);
  if (!models) return std::unexpected(models.error());
  auto settings = load_settings(names_of(*models));
  if (!settings) return std::unexpected(settings.error());
  // Children run within the memory that the supervisor was given at its start: plans stay within it until the next one.
  if (supervisor_) settings->models.memory = supervisor_->status().memory_budget;
  const ManagedModels managed = plan_models(*models, settings->models, device_);
  if (!supervisor_) start_supervisor(settings->models);
  const auto previous = runtime_ ? runtime_->snapshot() : nullptr;
  auto runtime = build_runtime(*settings, managed, *supervisor_, previous.get());
  if (!runtime) return std::unexpected(runtime.error());
  // Nothing was changed up to here: a configuration is refused as a whole.
  spdlog::set_level(spdlog::level::from_str(settings->log_level));
  for (const std::string& problem : managed.problems) spdlog::warn("{}", problem);
  prepare_models(managed);
  plain_loopback_ = settings->plain_loopback;
  trace_settings_ = settings->traces;
  server_settings_ = settings->server;
  if (runtime_) {
    runtime_->replace(std::move(*runtime));
    limits_->replace(endpoint_limits_of(server_settings_));
    for (auto& thread : threads_) thread->set_limits(limits_of(server_settings_));
    if (audit_ && traces_) record_policy();
  } else {
    runtime_.emplace(std::move(*runtime));
    limits_.emplace(endpoint_limits_of(server_settings_));
  }
  return {};
}

void ControlPlane::start_supervisor(const targets::ModelSettings& settings) {
  targets::SupervisorOptions options;
  options.server = llama_server(settings);
  if (auto engine = targets::find_engine(settings)) options.engine = std::move(*engine);
  options.run_folder = opened_->folder().run();
  options.log_folder = opened_->folder().logs();
  options.threads = settings.threads;
  options.schedule.memory_budget = settings.memory.value_or(sizing::memory_for_models(device_));
  options.schedule.keep_alive = settings.keep_alive;
  supervisor_ = std::make_unique<targets::Supervisor>(
      main_.get_executor(), std::move(options), targets::launch_through(*parent_), targets::make_child_probe(main_));
}

void ControlPlane::prepare_models(const ManagedModels& managed) {
  std::vector<std::string> names;
  for (const targets::ServedModel& model : managed.models) {
    if (auto known = supervisor_->add_model(model.plan); !known) spdlog::warn("{}", known.error().message);
    names.push_back(model.plan.name);
  }
  for (const std::string& name : managed_names_) {
    if (!std::ranges::contains(names, name)) supervisor_->remove_model(name);
  }
  managed_names_ = std::move(names);
}

Result<void> ControlPlane::start_network() {
  metrics_.emplace();
  services_.emplace(pipeline::Services{
      .audit = *audit_,
      .traces = *traces_,
      .runtime = *runtime_,
      .observe = [this](const pipeline::Observation& observation) { metrics_->observe(observation); }});
  endpoints_ = std::make_unique<server::Endpoints>(*services_, opened_->keys(), *metrics_, *limits_, administration());
  std::shared_ptr<http::TlsContext> tls;
  if (!server_settings_.tls_certificate.empty()) {
    auto made = load_tls(server_settings_);
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
  }
  egress::DoorOptions door;
  door.plain = plain_loopback_;
  for (std::uint32_t i = 0; i < server_settings_.threads; ++i) {
    threads_.push_back(std::make_unique<NetworkThread>(*endpoints_, limits_of(server_settings_), connections_, door));
    for (const Listener& listener : listeners_) {
      threads_.back()->listen(::dup(listener.descriptor.get()), listener.is_unix ? nullptr : tls);
    }
    threads_.back()->start();
  }
  return {};
}

// Sockets live in the parent, so that they survive us.
asio::awaitable<Result<void>> ControlPlane::open_listeners() {
  const std::string socket =
      server_settings_.socket.empty() ? (opened_->folder().run() / "molly.sock").string() : server_settings_.socket;
  std::vector<std::string> addresses{"unix:" + socket};
  const auto& wanted = options_.listen.empty() ? server_settings_.listen : options_.listen;
  addresses.insert(addresses.end(), wanted.begin(), wanted.end());
  for (const std::string& address : addresses) {
    auto descriptor = co_await parent_->listen(address);
    if (!descriptor) co_return std::unexpected(descriptor.error());
    listeners_.push_back({std::move(*descriptor), address.starts_with("unix:")});
  }
  co_return Result<void>{};
}

asio::awaitable<void> ControlPlane::start() {
  auto begun = co_await open_listeners();
  if (begun) {
    // From here on a predecessor drains; until it is done, clients wait in the listening sockets' queues.
    parent_->announce_ready();
    begun = co_await open_records();
  }
  if (begun) co_await adopt_and_preload();
  if (begun) begun = start_network();
  if (!begun) {
    std::cerr << "molly: " << begun.error().message << '\n';
    exit_code_ = 2;
    main_.stop();
    co_return;
  }
  write_address();
  welcome();
  watch();
}

// Whoever replaces a control plane says nothing: people have seen it.
void ControlPlane::welcome() {
  if (!options_.inherited.listeners.empty()) return;
  std::cout << welcome_text(http_url(), *runtime_->snapshot()) << std::flush;
  asio::co_spawn(main_, show_loading([this] { return supervisor_->status(); }, ::isatty(STDOUT_FILENO) == 1),
                 asio::detached);
}

server::Administration ControlPlane::administration() {
  return {
      .status_json =
          [this] {
            return status_json({.runtime = *runtime_->snapshot(),
                                .supervisor = supervisor_->status(),
                                .audit = audit_->status(),
                                .config_path = config_path_.string(),
                                .config_problem = *problem_.snapshot(),
                                .in_flight = endpoints_->in_flight()});
          },
      .ready =
          [this] {
            const auto now = std::chrono::steady_clock::now();
            const auto runtime = runtime_->snapshot();
            return std::ranges::any_of(runtime->targets,
                                       [&](const auto& t) { return t->health(now) != Health::failing; });
          },
      .connections = [this] { return connections_->open.load(std::memory_order_relaxed); },
      .request_reload = [this] { asio::post(main_, [this] { reload(); }); },
      .request_restart = [this] { asio::post(main_, [this] { parent_->request_replacement(); }); },
      .load_model = [this](std::string_view name) { return supervisor_->load(name); },
      .unload_model = [this](std::string_view name) { return supervisor_->unload(name); },
  };
}

void ControlPlane::reload() {
  if (draining_) return;
  if (auto applied = apply_configuration(); applied) {
    problem_.replace(std::string());
    spdlog::info("configuration in force: {} targets, policy {}", runtime_->snapshot()->targets.size(),
                 hex(runtime_->snapshot()->engine->digest()).substr(0, 12));
  } else {
    problem_.replace(applied.error().message);
    spdlog::error("the new configuration is refused, the old one stays in force:\n{}", applied.error().message);
    audit::Record refused{.kind = audit::Kind::config_refused};
    refused.policy = runtime_->snapshot()->engine->digest();
    if (!audit_) return;
    if (auto written = audit_->append(refused); !written) spdlog::warn("audit: {}", written.error().message);
  }
}

void ControlPlane::watch() {
  watcher_ = std::make_unique<config::Watcher>(main_.get_executor(), config_path_, [this] { reload(); });
}

void ControlPlane::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code failed, int number) {
    if (failed) return;
    if (number == SIGHUP) {
      reload();
    } else if (draining_) {
      drain_until_ = {};
    } else {
      drain();
    }
    wait_for_signal();
  });
}

void ControlPlane::drain() {
  if (std::exchange(draining_, true)) return;
  spdlog::info("draining: no new requests, those under way have {} s",
               std::chrono::duration_cast<std::chrono::seconds>(server_settings_.drain_deadline).count());
  drain_until_ = std::chrono::steady_clock::now() + server_settings_.drain_deadline;
  if (!endpoints_) return main_.stop();
  for (auto& thread : threads_) thread->begin_drain();
  drain_timer_ = std::make_unique<asio::steady_timer>(main_);
  finish_drain();
}

void ControlPlane::finish_drain() {
  const bool over = std::chrono::steady_clock::now() >= drain_until_;
  if (over && !std::exchange(interrupted_, true)) {
    const Error reason{ErrorCode::unavailable, "Molly is stopping and the time to finish this answer is over", ""};
    for (auto& thread : threads_) thread->interrupt_all(reason);
    drain_until_ = std::chrono::steady_clock::now() + final_flush;
  } else if (over || endpoints_->in_flight() == 0) {
    main_.stop();
    return;
  }
  drain_timer_->expires_after(drain_poll);
  drain_timer_->async_wait([this](boost::system::error_code failed) {
    if (!failed) finish_drain();
  });
}

// Of the first TCP listener; empty when there is none.
std::string ControlPlane::http_url() const {
  for (const Listener& listener : listeners_) {
    if (listener.is_unix) continue;
    if (const auto bound = base::bound_address(listener.descriptor.get()))
      return (server_settings_.tls_certificate.empty() ? "http://" : "https://") + *bound;
  }
  return {};
}

void ControlPlane::write_address() const {
  base::JsonWriter json;
  json.begin_object();
  for (const Listener& listener : listeners_) {
    if (!listener.is_unix) continue;
    if (const auto bound = base::bound_address(listener.descriptor.get())) json.member("socket", bound->substr(5));
  }
  if (const auto url = http_url(); !url.empty()) json.member("http", url);
  json.member("pid", static_cast<std::int64_t>(::getpid())).end_object();
  const auto path = opened_->folder().run() / "address.json";
  if (auto written = base::write_file_atomically(path, json.text(), base::Durability::kernel); !written) {
    spdlog::error("{}", written.error().message);
  }
}

asio::awaitable<void> ControlPlane::adopt_and_preload() {
  if (auto adopted = co_await supervisor_->adopt_children(); !adopted) spdlog::warn("{}", adopted.error().message);
  if (managed_names_.empty()) co_return;
  // A newcomer's first question should not wait for the model to load.
  if (auto loading = supervisor_->load(managed_names_.front()); !loading) spdlog::warn("{}", loading.error().message);
}

int ControlPlane::run() {
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.add(SIGHUP);
  wait_for_signal();
  parent_->start();
  asio::co_spawn(main_, start(), asio::detached);
  main_.run();
  for (auto& thread : threads_) thread->stop();
  supervisor_->stop();
  return exit_code_;
}

}  // namespace

int run_control_plane(ControlPlaneOptions options) {
  base::disable_core_dumps();
  base::ignore_broken_pipe();
  set_up_log("info");
  ControlPlane control_plane(std::move(options));
  if (auto opened = control_plane.open(); !opened) {
    std::cerr << "molly: " << opened.error().message << '\n';
    return 2;
  }
  return control_plane.run();
}

}  // namespace molly::apps
