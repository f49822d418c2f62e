#include "egress/door.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <filesystem>

#include "../http/scripted_server.h"
#include "../http/test_certificate.h"
#include "../policy/policy_fixture.h"
#include "http/server.h"

namespace molly::egress {
namespace {

namespace asio = boost::asio;
using http::FailureKind;
using http::RawPeer;
using http::ScriptedServer;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

ScriptedServer::Script answers_requests(std::string answer, std::vector<std::string>* seen, int times = 1) {
  return [=](RawPeer& peer) {
    for (int i = 0; i < times; ++i) {
      std::string request = peer.read_until("\r\n\r\n");
      request += peer.read_bytes(4);
      if (seen != nullptr) seen->push_back(request);
      peer.send(answer);
    }
  };
}

// Everything a dispatch needs, for targets "nano" (T0), "office" (T1), "rack" (T2) and "acme-large" (T3).
class DoorTest : public policy::LogFixture {
 protected:
  policy::AnyDispatch dispatch(std::string_view target, std::string bytes = "body") {
    const policy::Clearance clearance =
        policy::engine()->clear(policy::declared(labels::Confidentiality::public_), policy::today);
    auto payload = policy::accept(std::move(bytes));
    auto receipt = synced_receipt(clearance, target, payload.digest());
    auto made = policy::authorise(clearance, target, std::move(payload), std::move(receipt));
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  static Endpoint endpoint(std::string target, Tier tier, const std::string& url) {
    auto made = parse_endpoint(std::move(target), tier, url);
    EXPECT_TRUE(made);
    EXPECT_FALSE(made->key.size() > 0);
    return *made;
  }
  static Endpoint office(std::uint16_t port) {
    return endpoint("office", Tier::t1, "http://127.0.0.1:" + std::to_string(port) + "/v1");
  }

  struct Outcome {
    std::optional<FailureKind> failure;
    std::string message;
    unsigned status = 0;
    std::string body;
  };

  asio::awaitable<Outcome> ask(const Endpoint& at, policy::AnyDispatch dispatched) {
    Outbound request{.path = "/chat/completions", .headers = {{"x-extra", "1"}}};
    auto upstream = co_await door().send(at, std::move(dispatched), std::move(request));
    if (!upstream) co_return Outcome{upstream.error().kind, upstream.error().message, 0, {}};
    auto body = co_await upstream->read_all(1 << 20);
    if (!body) co_return Outcome{body.error().kind, body.error().message, upstream->status(), {}};
    co_return Outcome{{}, {}, upstream->status(), std::move(*body)};
  }

  Outcome send(const Endpoint& at, policy::AnyDispatch dispatched) { return run(ask(at, std::move(dispatched))); }

  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    asio::co_spawn(context_, std::move(task), [&](const std::exception_ptr& thrown, T value) {
      EXPECT_FALSE(thrown);
      result.emplace(std::move(value));
    });
    context_.restart();
    while (!result && context_.run_one_for(http::patience) > 0) {
    }
    return std::move(result.value());
  }

  Door& door() {
    if (!door_) door_ = std::make_unique<Door>(context_, options_);
    return *door_;
  }

  asio::io_context context_{1};
  DoorOptions options_;
  std::unique_ptr<Door> door_;
};

TEST_F(DoorTest, sends_exactly_the_permitted_bytes_with_head_and_key) {
  std::vector<std::string> seen;
  ScriptedServer server({answers_requests(ok, &seen)});
  Endpoint at = office(server.port());
  at.key = base::Secret("sesame");
  const Outcome outcome = send(at, dispatch("office"));
  EXPECT_EQ(outcome.failure, std::nullopt) << outcome.message;
  EXPECT_EQ(outcome.body, "ok");
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_THAT(seen[0], StartsWith("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:"));
  for (const char* line : {"Authorization: Bearer sesame\r\n", "Content-Type: application/json\r\n", "x-extra: 1\r\n",
                           "Content-Length: 4\r\n\r\nbody"}) {
    EXPECT_THAT(seen[0], HasSubstr(line));
  }
}

TEST_F(DoorTest, a_permit_opens_only_its_own_target_at_its_own_tier) {
  const Endpoint other = endpoint("another", Tier::t1, "http://127.0.0.1:9");
  EXPECT_EQ(send(other, dispatch("office")).failure, FailureKind::not_permitted);
  const Endpoint promoted = endpoint("office", Tier::t0, "unix:/nowhere.sock");
  EXPECT_EQ(send(promoted, dispatch("office")).failure, FailureKind::not_permitted);
  EXPECT_EQ(door().open_connections(), 0U);
}

TEST_F(DoorTest, an_unproven_address_gets_no_packet) {
  EXPECT_EQ(send(endpoint("office", Tier::t1, "http://8.8.8.8"), dispatch("office")).failure,
            FailureKind::not_permitted);
  EXPECT_EQ(send(endpoint("rack", Tier::t2, "https://127.0.0.1:9"), dispatch("rack")).failure,
            FailureKind::not_permitted);
  EXPECT_EQ(send(endpoint("acme-large", Tier::t3, "http://127.0.0.1:9"), dispatch("acme-large")).failure,
            FailureKind::not_permitted);
}

TEST_F(DoorTest, uses_a_connection_again) {
  std::vector<std::string> seen;
  ScriptedServer server({answers_requests(ok, &seen, 3)});
  const Endpoint at = office(server.port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(at, dispatch("office")).body, "ok");
  EXPECT_EQ(door().idle_connections(), 1U);
  EXPECT_EQ(door().open_connections(), 1U);
  door().forget();
  EXPECT_EQ(door().open_connections(), 0U);
}

TEST_F(DoorTest, repeats_a_request_only_on_a_kept_connection_that_was_dead) {
  std::vector<std::string> seen;
  // Closes as it reads the second request, without a byte of an answer.
  const auto closes_on_second = [&](RawPeer& peer) {
    answers_requests(ok, &seen)(peer);
    peer.read_until("\r\n\r\n");
    peer.reset();
  };
  ScriptedServer server({closes_on_second, answers_requests(ok, &seen)});
  const Endpoint at = office(server.port());
  EXPECT_EQ(send(at, dispatch("office")).body, "ok");
  EXPECT_EQ(send(at, dispatch("office")).body, "ok");
  EXPECT_EQ(seen.size(), 2U);
}

TEST_F(DoorTest, does_not_repeat_on_a_fresh_connection_or_after_a_byte) {
  const auto half = [](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 2");
  };
  const auto then_half = [&](RawPeer& peer) {
    answers_requests(ok, nullptr)(peer);
    half(peer);
  };
  const auto resets = [](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    peer.reset();
  };
  ScriptedServer server({resets, then_half});
  const Endpoint at = office(server.port());
  EXPECT_EQ(send(at, dispatch("office")).failure, FailureKind::reset);
  EXPECT_EQ(send(at, dispatch("office")).body, "ok");
  EXPECT_EQ(send(at, dispatch("office")).failure, FailureKind::truncated);
}

TEST_F(DoorTest, tells_failures_apart) {
  const auto fails = [&](ScriptedServer::Script script) {
    ScriptedServer server({std::move(script)});
    Endpoint at = office(server.port());
    at.deadlines.first_byte = at.deadlines.idle = 100ms;
    return send(at, dispatch("office")).failure;
  };
  EXPECT_EQ(fails(http::answers("SSH-2.0\r\n\r\n")), FailureKind::garbage);
  EXPECT_EQ(fails(http::answers("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")),
            FailureKind::garbage);
  EXPECT_EQ(fails(http::answers("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx")),
            FailureKind::garbage);
  EXPECT_EQ(fails(http::answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")), FailureKind::truncated);
  EXPECT_EQ(fails([](RawPeer& peer) { peer.read_to_end(); }), FailureKind::first_byte_timeout);
  EXPECT_EQ(fails([](RawPeer& peer) {
              peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
              peer.read_to_end();
            }),
            FailureKind::idle_stall);
  std::uint16_t closed = 0;
  {
    closed = http::port_of(base::listen_on("127.0.0.1:0")->get());
  }
  EXPECT_EQ(send(office(closed), dispatch("office")).failure, FailureKind::refused);
  EXPECT_EQ(send(endpoint("nano", Tier::t0, "unix:/nowhere/at/all.sock"), dispatch("nano")).failure,
            FailureKind::refused);
  EXPECT_EQ(send(endpoint("office", Tier::t1, "http://no-such-host.invalid"), dispatch("office")).failure,
            FailureKind::dns);
}

TEST_F(DoorTest, a_listener_that_never_shakes_hands_times_out) {
  ScriptedServer server({[](RawPeer& peer) { peer.read_to_end(); }});
  Endpoint at = endpoint("rack", Tier::t2, "https://127.0.0.1:" + std::to_string(server.port()));
  at.pin = Pin{};
  at.connect_deadline = 100ms;
  EXPECT_EQ(send(at, dispatch("rack")).failure, FailureKind::connect_timeout);
}

TEST_F(DoorTest, more_requests_than_connections_fail_as_busy) {
  ScriptedServer server({answers_requests("HTTP/1.1 200 OK\r\n\r\n", nullptr)});
  Endpoint at = office(server.port());
  at.connections = 1;
  const auto twice = [&](policy::AnyDispatch first, policy::AnyDispatch second) -> asio::awaitable<Outcome> {
    auto held = co_await door().send(at, std::move(first), Outbound{.path = "/"});
    EXPECT_TRUE(held);
    EXPECT_EQ(door().open_connections(), 1U);
    co_return co_await ask(at, std::move(second));
  };
  EXPECT_EQ(run(twice(dispatch("office"), dispatch("office"))).failure, FailureKind::busy);
  EXPECT_EQ(door().open_connections(), 0U);  // the held one was not read to its end
}

TEST_F(DoorTest, leaving_an_answer_closes_its_connection) {
  std::atomic<bool> noticed = false;
  ScriptedServer server({[&](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    while (peer.send("5\r\nhello\r\n")) std::this_thread::sleep_for(1ms);
    noticed = true;
  }});
  const Endpoint at = office(server.port());
  const auto leave = [&](policy::AnyDispatch dispatched) -> asio::awaitable<bool> {
    auto upstream = co_await door().send(at, std::move(dispatched), Outbound{.path = "/"});
    co_return upstream&& co_await upstream->read_some();
  };
  EXPECT_TRUE(run(leave(dispatch("office"))));
  for (int i = 0; i < 2'000 && !noticed; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(noticed);
  EXPECT_EQ(door().open_connections(), 0U);
}

TEST_F(DoorTest, proxy_variables_are_ignored) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  ScriptedServer server({answers_requests(ok, nullptr)});
  EXPECT_EQ(send(office(server.port()), dispatch("office")).body, "ok");
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
}

TEST_F(DoorTest, probes_t0_and_t1_only) {
  std::string seen;
  ScriptedServer server({[&](RawPeer& peer) {
    seen = peer.read_until("\r\n\r\n");
    peer.send(ok);
  }});
  const Endpoint at = office(server.port());
  const auto probed = run(door().probe(at, "/health"));
  ASSERT_TRUE(probed);
  EXPECT_EQ(probed->status, 200U);
  EXPECT_EQ(probed->body, "ok");
  EXPECT_THAT(seen, StartsWith("GET /health HTTP/1.1\r\n"));
  const Endpoint far = endpoint("acme-large", Tier::t3, "https://127.0.0.1:1");
  EXPECT_EQ(run(door().probe(far, "/health")).error().kind, FailureKind::not_permitted);
}

// Our own server as the other end, for unix sockets and TLS.
class DoorToServer : public DoorTest {
 protected:
  void serve(const std::string& address, std::shared_ptr<http::TlsContext> tls = nullptr) {
    http::ServerOptions options;
    options.handler = [](http::Exchange& exchange) -> asio::awaitable<void> {
      (void)co_await exchange.respond(200, {}, exchange.body());
    };
    server_ = std::make_unique<http::Server>(context_, options);
    auto listening = base::listen_on(address);
    ASSERT_TRUE(listening) << listening.error().message;
    if (!address.starts_with("unix:")) port_ = http::port_of(listening->get());
    ASSERT_TRUE(server_->listen(listening->release(), std::move(tls)));
  }
  void serve_tls() { serve("127.0.0.1:0", *http::server_tls(certificate_.certificate, certificate_.key)); }
  std::string url(const std::string& host = "127.0.0.1") const {
    return "https://" + host + ":" + std::to_string(port_);
  }

  http::TestCertificate certificate_ = http::make_certificate();
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
};

TEST_F(DoorToServer, reaches_a_unix_socket_of_our_own) {
  const std::string path = (home_ / "a.sock").string();
  serve("unix:" + path);
  EXPECT_EQ(send(endpoint("nano", Tier::t0, "unix:" + path), dispatch("nano", "hello")).body, "hello");
}

TEST_F(DoorToServer, a_pinned_key_is_enough_and_another_is_refused) {
  serve_tls();
  Endpoint at = endpoint("rack", Tier::t2, url());
  at.pin = certificate_.pin;
  const Outcome outcome = send(at, dispatch("rack", "hello"));
  EXPECT_EQ(outcome.body, "hello") << outcome.message;
  EXPECT_EQ(send(at, dispatch("rack", "again")).body, "again");
  at.pin->back() ^= 1;
  EXPECT_EQ(send(at, dispatch("rack")).failure, FailureKind::tls);
}

TEST_F(DoorToServer, an_external_target_needs_a_certificate_that_is_vouched_for) {
  serve_tls();
  EXPECT_EQ(send(endpoint("acme-large", Tier::t3, url()), dispatch("acme-large")).failure, FailureKind::tls);
  options_.further_authorities = certificate_.certificate;
  door_.reset();
  const Outcome outcome = send(endpoint("acme-large", Tier::t3, url("localhost")), dispatch("acme-large", "hello"));
  EXPECT_EQ(outcome.body, "hello") << outcome.message;
}

TEST_F(DoorToServer, a_certificate_for_another_name_is_refused) {
  certificate_ = http::make_certificate("DNS:elsewhere.example");
  serve_tls();
  options_.further_authorities = certificate_.certificate;
  EXPECT_EQ(send(endpoint("acme-large", Tier::t3, url("localhost")), dispatch("acme-large")).failure, FailureKind::tls);
}

TEST_F(DoorToServer, a_moved_target_gets_new_connections) {
  serve("127.0.0.1:0");
  EXPECT_EQ(send(office(port_), dispatch("office", "one")).body, "one");
  EXPECT_EQ(door().idle_connections(), 1U);
  server_.reset();
  serve("127.0.0.1:0");
  EXPECT_EQ(send(office(port_), dispatch("office", "two")).body, "two");
  EXPECT_EQ(door().idle_connections(), 1U);
}

}  // namespace
}  // namespace molly::egress
