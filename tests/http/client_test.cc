#include "http/client.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "scripted_server.h"

namespace molly::http {
namespace {

namespace asio = boost::asio;

constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

struct Outcome {
  std::optional<FailureKind> failure;
  unsigned status = 0;
  std::string body;
  bool reusable = false;
};

class HttpClient : public ::testing::Test {
 protected:
  Client connect(std::uint16_t port) {
    RawPeer raw = RawPeer::to_port(port);
    return Client(Stream(std::move(*adopt_socket(context, ::dup(raw.descriptor())))), limits);
  }

  asio::awaitable<Outcome> fetch(Client& client) {
    Outcome outcome;
    if (const auto sent = co_await client.send(request, {}, deadlines); !sent) {
      outcome.failure = sent.error().kind;
      co_return outcome;
    }
    const auto head = co_await client.read_head();
    if (!head) {
      outcome.failure = head.error().kind;
      co_return outcome;
    }
    outcome.status = head->status;
    for (;;) {
      const auto piece = co_await client.read_some();
      if (!piece) outcome.failure = piece.error().kind;
      if (!piece || piece->empty()) break;
      outcome.body.append(*piece);
    }
    outcome.reusable = client.reusable();
    co_return outcome;
  }

  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    asio::co_spawn(context, std::move(task), [&](const std::exception_ptr& thrown, T value) {
      EXPECT_FALSE(thrown);
      result = std::move(value);
    });
    context.restart();
    context.run();
    return std::move(*result);
  }

  Outcome fetch_from(ScriptedServer::Script script) {
    ScriptedServer server({std::move(script)});
    Client client = connect(server.port());
    return run(fetch(client));
  }

  asio::io_context context{1};
  ClientLimits limits;
  ClientDeadlines deadlines;
};

TEST_F(HttpClient, reads_a_body_of_known_length_and_may_be_used_again) {
  const Outcome outcome = fetch_from(answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
  EXPECT_EQ(outcome.failure, std::nullopt);
  EXPECT_EQ(outcome.status, 200U);
  EXPECT_EQ(outcome.body, "hello");
  EXPECT_TRUE(outcome.reusable);
}

TEST_F(HttpClient, joins_the_chunks_that_came_together) {
  const Outcome outcome = fetch_from(answers(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n2\r\nef\r\n0\r\nT: x\r\n\r\n"));
  EXPECT_EQ(outcome.failure, std::nullopt);
  EXPECT_EQ(outcome.body, "abcdef");
  EXPECT_TRUE(outcome.reusable);
}

TEST_F(HttpClient, reads_chunks_that_come_byte_by_byte) {
  const Outcome outcome = fetch_from([](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    const std::string text =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
    for (const char c : text) {
      peer.send({&c, 1});
      if (c == '\n') std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_EQ(outcome.failure, std::nullopt);
  EXPECT_EQ(outcome.body, "abc0123456789abcdef");
}

TEST_F(HttpClient, reads_until_close_where_there_is_no_length) {
  const Outcome outcome = fetch_from(answers("HTTP/1.1 200 OK\r\n\r\nall of it"));
  EXPECT_EQ(outcome.failure, std::nullopt);
  EXPECT_EQ(outcome.body, "all of it");
  EXPECT_FALSE(outcome.reusable);
}

TEST_F(HttpClient, knows_answers_without_a_body) {
  const Outcome outcome = fetch_from(answers("HTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_EQ(outcome.status, 204U);
  EXPECT_TRUE(outcome.reusable);
}

TEST_F(HttpClient, skips_interim_responses) {
  const Outcome outcome =
      fetch_from(answers("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 "
                         "OK\r\nContent-Length: 1\r\n\r\nx"));
  EXPECT_EQ(outcome.status, 200U);
  EXPECT_EQ(outcome.body, "x");
}

TEST_F(HttpClient, does_not_reuse_a_connection_that_closes_or_says_more_than_asked) {
  EXPECT_FALSE(fetch_from(answers("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")).reusable);
  EXPECT_FALSE(fetch_from(answers("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx")).reusable);
  EXPECT_FALSE(fetch_from(answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP")).reusable);
}

TEST_F(HttpClient, reads_a_large_body_in_pieces) {
  std::string body;
  for (int i = 0; body.size() < (3 << 20); ++i) body += std::to_string(i) + ",";
  const Outcome outcome =
      fetch_from(answers("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body));
  EXPECT_EQ(outcome.failure, std::nullopt);
  EXPECT_TRUE(outcome.body == body);
}

TEST_F(HttpClient, tells_failures_apart) {
  limits.max_head_bytes = 4'000;
  struct Case {
    const char* name;
    ScriptedServer::Script script;
    FailureKind kind;
  };
  const Case cases[] = {
      {"not http", answers("SSH-2.0-OpenSSH\r\n\r\n"), FailureKind::garbage},
      {"http 2", answers("HTTP/2.0 200 OK\r\n\r\n"), FailureKind::garbage},
      {"switching protocols", answers("HTTP/1.1 101 Switching Protocols\r\n\r\n"), FailureKind::garbage},
      {"bad chunk", answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), FailureKind::garbage},
      {"large head", answers("HTTP/1.1 200 OK\r\nX: " + std::string(5'000, 'a')), FailureKind::head_too_large},
      {"closed at once", answers(""), FailureKind::reset},
      {"closed in the head", answers("HTTP/1.1 200 OK\r\nContent-"), FailureKind::truncated},
      {"closed in the body", answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), FailureKind::truncated},
      {"closed in a chunk", answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
       FailureKind::truncated},
      {"closed before the last chunk", answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n"),
       FailureKind::truncated},
      {"reset",
       [](RawPeer& peer) {
         peer.read_until("\r\n\r\n");
         peer.reset();
       },
       FailureKind::reset},
      {"endless interim responses",
       [](RawPeer& peer) {
         peer.read_until("\r\n\r\n");
         while (peer.send("HTTP/1.1 100 Continue\r\n\r\n")) {
         }
       },
       FailureKind::garbage},
  };
  for (const Case& one : cases) {
    const Outcome outcome = fetch_from(one.script);
    EXPECT_EQ(outcome.failure, one.kind) << one.name;
    EXPECT_FALSE(outcome.reusable) << one.name;
  }
}

TEST_F(HttpClient, tells_silence_before_and_within_an_answer_apart) {
  deadlines.first_byte = deadlines.idle = 100ms;
  const auto silence = [](std::string_view said) {
    return [said](RawPeer& peer) {
      peer.read_until("\r\n\r\n");
      peer.send(said);
      peer.read_to_end();
    };
  };
  EXPECT_EQ(fetch_from(silence("")).failure, FailureKind::first_byte_timeout);
  EXPECT_EQ(fetch_from(silence("HTTP/1.1 2")).failure, FailureKind::idle_stall);
  EXPECT_EQ(fetch_from(silence("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")).failure, FailureKind::idle_stall);
}

TEST_F(HttpClient, gives_up_on_a_peer_that_does_not_take_the_request) {
  deadlines.write = 100ms;
  std::atomic<bool> done = false;
  ScriptedServer server({[&](RawPeer&) {
    while (!done) std::this_thread::sleep_for(1ms);
  }});
  Client client = connect(server.port());
  const std::string body(16 << 10, 'x');
  const auto fill = [&]() -> asio::awaitable<Attempt<void>> {
    for (;;) {
      const auto sent = co_await client.send(request, body, deadlines);
      if (!sent) co_return sent;
    }
  };
  const auto sent = run(fill());
  done = true;
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().kind, FailureKind::write_timeout);
}

TEST_F(HttpClient, carries_several_requests_and_notices_a_closed_connection) {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  std::atomic<bool> close = false;
  ScriptedServer server({[&](RawPeer& peer) {
    for (int i = 0; i < 3; ++i) {
      peer.read_until("\r\n\r\n");
      peer.send(answer);
    }
    while (!close) std::this_thread::sleep_for(1ms);
    peer.close();
    close = false;
  }});
  Client client = connect(server.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(fetch(client)).body, "ok");
    EXPECT_TRUE(client.reusable());
    EXPECT_FALSE(client.stale());
  }
  EXPECT_EQ(client.requests_sent(), 3U);
  close = true;
  while (close) std::this_thread::sleep_for(1ms);
  while (!client.stale()) std::this_thread::sleep_for(1ms);
  const Outcome outcome = run(fetch(client));
  EXPECT_EQ(outcome.failure, FailureKind::reset);
  EXPECT_TRUE(client.nothing_received());
}

TEST_F(HttpClient, a_cancelled_read_fails_as_cancelled) {
  std::atomic<bool> asked = false;
  ScriptedServer server({[&](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    asked = true;
    peer.read_to_end();
  }});
  std::optional<Outcome> outcome;
  asio::cancellation_signal stop;
  {
    Client client = connect(server.port());
    asio::co_spawn(context, fetch(client),
                   asio::bind_cancellation_slot(
                       stop.slot(), [&](const std::exception_ptr&, Outcome value) { outcome = std::move(value); }));
    while (!asked) context.run_for(1ms);
    stop.emit(asio::cancellation_type::terminal);
    context.restart();
    context.run();
  }
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failure, FailureKind::cancelled);
}

TEST(Failure, says_what_a_client_is_told) {
  EXPECT_EQ(failed(FailureKind::refused).error().error().code, ErrorCode::upstream_failed);
  EXPECT_EQ(failed(FailureKind::idle_stall).error().error().code, ErrorCode::timeout);
  EXPECT_EQ(failed(FailureKind::not_permitted).error().error().code, ErrorCode::forbidden);
  EXPECT_EQ(failed(FailureKind::busy).error().error().code, ErrorCode::overloaded);
  EXPECT_EQ(failed(FailureKind::cancelled).error().error().code, ErrorCode::cancelled);
  EXPECT_EQ(to_string(FailureKind::first_byte_timeout), "first_byte_timeout");
}

}  // namespace
}  // namespace molly::http
