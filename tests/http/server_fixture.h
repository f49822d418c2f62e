#pragma once

#include <boost/asio/deferred.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "http/server.h"
#include "raw_peer.h"

namespace molly::http {

namespace asio = boost::asio;

// A server on a thread of its own; `options` may be changed until start().
class ServerFixture : public ::testing::Test {
 protected:
  ServerFixture() {
    options.handler = [this](Exchange& exchange) { return handle(exchange); };
  }

  ~ServerFixture() override { stop(); }

  void start(std::shared_ptr<TlsContext> tls = nullptr) {
    auto listening = base::listen_on("127.0.0.1:0");
    ASSERT_TRUE(listening);
    port = port_of(listening->get());
    server = std::make_unique<Server>(context, options);
    ASSERT_TRUE(server->listen(listening->release(), std::move(tls)));
    thread = std::thread([this] { context.run(); });
  }

  void stop() {
    if (!thread.joinable()) return;
    on_thread([this] { context.stop(); });
    thread.join();
    server.reset();
  }

  // Runs it on the server's thread and waits.
  void on_thread(std::function<void()> act) {
    std::promise<void> done;
    asio::post(context, [&] {
      act();
      done.set_value();
    });
    done.get_future().wait();
  }

  // Waits until the condition, asked on the server's thread, holds.
  bool eventually(const std::function<bool()>& condition) {
    for (const auto end = std::chrono::steady_clock::now() + patience; std::chrono::steady_clock::now() < end;) {
      bool holds = false;
      on_thread([&] { holds = condition(); });
      if (holds) return true;
      std::this_thread::sleep_for(2ms);
    }
    return false;
  }

  RawPeer connect() const { return RawPeer::to_port(port); }
  std::string ask(std::string_view request) const {
    RawPeer peer = connect();
    peer.send(request);
    return peer.read_response();
  }

  // Waits for ever; only a cancellation ends it.
  asio::awaitable<void> wait_for_ever() {
    waiting = true;
    asio::steady_timer timer(context, std::chrono::steady_clock::time_point::max());
    struct Ended {
      std::atomic<bool>& ended;
      ~Ended() { ended = true; }
    } ended{handler_ended};
    co_await timer.async_wait(asio::deferred);
  }

  asio::awaitable<void> handle(Exchange& exchange) {
    const std::string_view path = exchange.path();
    if (path == "/echo") {
      (void)co_await exchange.respond(200, {{"Content-Type", "text/plain"}}, exchange.body());
    } else if (path == "/stream") {
      (void)exchange.start_stream(200, {{"Content-Type", "text/event-stream"}});
      for (const std::string_view piece : {"one\n", "two\n", "three\n"}) (void)co_await exchange.write(piece);
      (void)co_await exchange.finish("end\n");
    } else if (path == "/large") {
      const std::string body(8 << 20, 'x');
      large_result = co_await exchange.respond(200, {}, body);
      large_done = true;
    } else if (path == "/ever") {
      co_await wait_for_ever();
    } else if (path == "/stream-ever") {
      (void)exchange.start_stream(200, {});
      (void)co_await exchange.write("begun");
      co_await wait_for_ever();
    } else if (path == "/silent") {
    } else if (path == "/unfinished") {
      (void)exchange.start_stream(200, {});
      (void)co_await exchange.write("begun");
    } else if (path == "/fault") {
      throw std::runtime_error("a bug");
    } else {
      const std::string text = describe(exchange);
      (void)co_await exchange.respond(200, {}, text);
    }
  }

  static std::string describe(const Exchange& exchange) {
    std::string text(exchange.method());
    text.append(" ").append(exchange.path()).append(" ?").append(exchange.query());
    text.append(" x=").append(exchange.header("X-THING").value_or("none"));
    if (exchange.peer().kind == Peer::Kind::loopback) text.append(" loopback");
    if (exchange.peer().kind == Peer::Kind::unix_socket) text.append(" unix");
    if (exchange.peer().tls) text.append(" tls");
    return text;
  }

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  ServerOptions options;
  std::unique_ptr<Server> server;
  std::thread thread;
  std::uint16_t port = 0;
  std::atomic<bool> waiting{false};
  std::atomic<bool> handler_ended{false};
  std::atomic<bool> large_done{false};
  Result<void> large_result;
};

}  // namespace molly::http
