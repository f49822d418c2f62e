#include "engine/service.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <cstdlib>

#include "base/os/socket.h"
#include "base/text.h"

namespace molly::apps {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds drain_poll{20};

void tell_start(const engine::Engine& engine, const std::string& address) {
  const engine::EngineOptions& options = engine.options();
  const engine::EngineStatus status = engine.status();
  spdlog::info("{} is ready on {}: {} threads, {} requests of {} tokens at a time, {} pages of {}", options.name,
               address, options.backend.threads, options.schedule.max_running, options.schedule.context_length,
               status.pages, base::human_size(status.page_bytes));
}

}  // namespace

Service::Service(engine::EngineOptions options, base::Secret key, std::uint64_t loaded_bytes)
    : options_(std::move(options)), key_(std::move(key)), loading_(loaded_bytes), signals_(context_), timer_(context_) {
  http::ServerOptions server;
  server.handler = [this](http::Exchange& exchange) { return answer(exchange); };
  server.on_fault = [](std::string_view what) { spdlog::error("this is a bug: {}", what); };
  server_ = std::make_unique<http::Server>(context_, std::move(server));
  for (const int signal : {SIGTERM, SIGINT}) signals_.add(signal);
}

Service::~Service() {
  if (loader_.joinable()) loader_.join();
}

Result<void> Service::run(const std::string& address) {
  auto listening = base::listen_on(address);
  if (!listening) return std::unexpected(listening.error());
  if (auto accepts = server_->listen(listening->release()); !accepts) return accepts;
  address_ = address;
  wait_for_signal();
  start_loading();
  context_.run();
  // Loading cannot be interrupted, and there is nothing yet that would have to be ended well.
  if (outcome_ && !api_) std::quick_exit(0);
  return outcome_;
}

asio::awaitable<void> Service::answer(http::Exchange& exchange) {
  return api_ ? api_->handle(exchange) : loading_.handle(exchange);
}

void Service::start_loading() {
  loader_ = std::thread([this] {
    auto started = std::make_shared<Result<std::unique_ptr<engine::Engine>>>(engine::Engine::start(options_));
    asio::post(context_, [this, started] { loaded(std::move(*started)); });
  });
}

void Service::loaded(Result<std::unique_ptr<engine::Engine>> engine) {
  if (!engine) {
    outcome_ = std::unexpected(engine.error());
    return context_.stop();
  }
  engine_ = std::move(*engine);
  api_.emplace(*engine_, std::move(key_));
  tell_start(*engine_, address_);
}

void Service::wait_for_signal() {
  signals_.async_wait([this](boost::system::error_code failed, int) {
    if (failed) return;
    if (std::exchange(draining_, true)) return context_.stop();
    server_->begin_drain();
    wait_for_signal();
    stop_when_done();
  });
}

void Service::stop_when_done() {
  if (server_->active() == 0) return context_.stop();
  timer_.expires_after(drain_poll);
  timer_.async_wait([this](boost::system::error_code failed) {
    if (!failed) stop_when_done();
  });
}

}  // namespace molly::apps
