#include "control_plane/network_thread.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

namespace molly::apps {

NetworkThread::NetworkThread(server::Endpoints& endpoints, const http::ServerLimits& limits,
                             std::shared_ptr<http::ConnectionCount> count, egress::DoorOptions door_options)
    : context_(1), work_(boost::asio::make_work_guard(context_)) {
  door_ = std::make_unique<egress::Door>(context_, std::move(door_options));
  http::ServerOptions options;
  options.limits = limits;
  options.count = std::move(count);
  thread_context_ = std::make_unique<server::ThreadContext>(server::ThreadContext{.door = *door_, .conversations = {}});
  options.handler = [&endpoints, thread = thread_context_.get()](http::Exchange& exchange) {
    return endpoints.handle(exchange, *thread);
  };
  server_ = std::make_unique<http::Server>(context_, std::move(options));
}

NetworkThread::~NetworkThread() { stop(); }

void NetworkThread::listen(int descriptor, std::shared_ptr<http::TlsContext> tls) {
  boost::asio::post(context_, [this, descriptor, tls = std::move(tls)] {
    if (auto listening = server_->listen(descriptor, tls); !listening) spdlog::error("{}", listening.error().message);
  });
}

void NetworkThread::start() {
  thread_ = std::thread([this] { context_.run(); });
}

void NetworkThread::set_limits(const http::ServerLimits& limits) {
  boost::asio::post(context_, [this, limits] {
    server_->set_limits(limits);
    door_->forget();
  });
}

void NetworkThread::begin_drain() {
  boost::asio::post(context_, [this] { server_->begin_drain(); });
}

void NetworkThread::interrupt_all(const Error& reason) {
  boost::asio::post(context_, [this, reason] { thread_context_->interrupt_all(reason); });
}

void NetworkThread::stop() {
  if (!thread_.joinable()) return;
  context_.stop();
  thread_.join();
}

}  // namespace molly::apps
