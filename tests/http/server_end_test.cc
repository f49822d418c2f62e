#include <gmock/gmock.h>

#include "server_fixture.h"

namespace molly::http {
namespace {

using ::testing::HasSubstr;

class HttpServerEnd : public ServerFixture {};

TEST_F(HttpServerEnd, a_client_that_leaves_cancels_its_handler) {
  start();
  RawPeer peer = connect();
  peer.send("GET /ever HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return waiting.load(); }));
  EXPECT_EQ(server->active(), 1U);
  peer.close();
  EXPECT_TRUE(eventually([this] { return handler_ended && server->active() == 0 && server->connections() == 0; }));
  EXPECT_EQ(server->statistics().abandoned, 1U);
}

TEST_F(HttpServerEnd, a_client_that_resets_in_a_stream_cancels_its_handler) {
  start();
  RawPeer peer = connect();
  peer.send("GET /stream-ever HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(peer.read_until("begun"), HasSubstr("begun"));
  peer.reset();
  EXPECT_TRUE(eventually([this] { return handler_ended && server->connections() == 0; }));
}

TEST_F(HttpServerEnd, a_pipelined_request_does_not_cancel_the_one_before) {
  std::atomic<bool> release = false;
  options.handler = [&](Exchange& exchange) -> asio::awaitable<void> {
    asio::steady_timer timer(context);
    while (!release) {
      timer.expires_after(5ms);
      co_await timer.async_wait(asio::deferred);
    }
    EXPECT_TRUE(co_await exchange.respond(200, {}, exchange.path()));
  };
  start();
  RawPeer peer = connect();
  peer.send("GET /one HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return server->active() == 1; }));
  peer.send("GET /two HTTP/1.1\r\nHost: a\r\n\r\n");
  release = true;
  EXPECT_THAT(peer.read_response(), HasSubstr("/one"));
  EXPECT_THAT(peer.read_response(), HasSubstr("/two"));
}

TEST_F(HttpServerEnd, drain_closes_idle_connections_and_accepts_no_more) {
  start();
  RawPeer idle = connect();
  idle.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  idle.read_response();
  on_thread([this] { server->begin_drain(); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(eventually([this] { return server->connections() == 0; }));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_NE(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(descriptor);
}

TEST_F(HttpServerEnd, drain_lets_requests_end_and_says_close) {
  std::atomic<bool> release = false;
  options.handler = [&](Exchange& exchange) -> asio::awaitable<void> {
    asio::steady_timer timer(context);
    while (!release) {
      timer.expires_after(5ms);
      co_await timer.async_wait(asio::deferred);
    }
    EXPECT_TRUE(exchange.draining());
    EXPECT_TRUE(co_await exchange.respond(200, {}, "done"));
  };
  start();
  RawPeer peer = connect();
  peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([this] { return server->active() == 1; }));
  on_thread([this] { server->begin_drain(); });
  release = true;
  const std::string answer = peer.read_to_end();
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("done"));
}

TEST_F(HttpServerEnd, cancel_all_ends_handlers_and_connections) {
  start();
  RawPeer busy = connect();
  busy.send("GET /ever HTTP/1.1\r\nHost: a\r\n\r\n");
  RawPeer idle = connect();
  ASSERT_TRUE(eventually([this] { return waiting && server->connections() == 2; }));
  on_thread([this] { server->cancel_all(); });
  EXPECT_EQ(busy.read_to_end(), "");
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(eventually([this] { return handler_ended && server->connections() == 0; }));
}

TEST_F(HttpServerEnd, a_server_may_die_with_requests_under_way) {
  start();
  RawPeer busy = connect();
  busy.send("GET /ever HTTP/1.1\r\nHost: a\r\n\r\n");
  RawPeer idle = connect();
  ASSERT_TRUE(eventually([this] { return waiting && server->connections() == 2; }));
  stop();
}

// Several threads, each with its own context and server, accept from one socket.
TEST(HttpServers, share_a_socket_and_a_count_between_threads) {
  auto listening = base::listen_on("127.0.0.1:0");
  ASSERT_TRUE(listening);
  const std::uint16_t port = port_of(listening->get());
  struct NetworkThread {
    asio::io_context context{1};
    std::unique_ptr<Server> server;
    std::thread thread;
  };
  ServerOptions options;
  options.handler = [](Exchange& exchange) -> asio::awaitable<void> {
    EXPECT_TRUE(exchange.start_stream(200, {}));
    EXPECT_TRUE(co_await exchange.write(exchange.path()));
    EXPECT_TRUE(co_await exchange.finish());
  };
  std::array<NetworkThread, 3> threads;
  for (NetworkThread& one : threads) {
    one.server = std::make_unique<Server>(one.context, options);
    ASSERT_TRUE(one.server->listen(::dup(listening->get())));
    one.thread = std::thread([&one] { one.context.run(); });
  }
  std::vector<std::thread> clients;
  clients.reserve(8);
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([port, i] {
      for (int connection = 0; connection < 5; ++connection) {
        RawPeer peer = RawPeer::to_port(port);
        for (int request = 0; request < 20; ++request) {
          peer.send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n");
          EXPECT_THAT(peer.read_until("0\r\n\r\n"), HasSubstr("\r\n2\r\n/" + std::to_string(i) + "\r\n0\r\n"));
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  std::uint64_t requests = 0;
  for (NetworkThread& one : threads) {
    // A client has the end of its answer a moment before the server has noted it.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (one.server->active() != 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(one.server->active(), 0U);
    requests += one.server->statistics().requests;
    one.context.stop();
    one.thread.join();
    one.server.reset();
  }
  EXPECT_EQ(requests, 800U);
}

}  // namespace
}  // namespace molly::http
