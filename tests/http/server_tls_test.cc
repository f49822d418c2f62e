#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>

#include "http/client.h"
#include "server_fixture.h"
#include "test_certificate.h"

namespace molly::http {
namespace {

using ::testing::HasSubstr;

class HttpServerTls : public ServerFixture {
 protected:
  // The whole answer over a TLS client of our own, or "failed".
  std::string ask_over_tls(std::string_view request, int times = 1) {
    asio::io_context client_context{1};
    TlsContext tls(TlsContext::tls_client);
    std::string text;
    asio::co_spawn(
        client_context,
        [&]() -> asio::awaitable<void> {
          RawPeer raw = connect();
          Stream stream(std::move(*adopt_socket(client_context, ::dup(raw.descriptor()))), tls);
          co_await stream.tls()->async_handshake(TlsSocket::client, asio::deferred);
          Client client(std::move(stream));
          for (int i = 0; i < times; ++i) {
            EXPECT_TRUE(co_await client.send(request, {}, {}));
            const auto head = co_await client.read_head();
            EXPECT_TRUE(head);
            const auto body = co_await client.read_all(64 << 20);
            EXPECT_TRUE(body) << body.error().message;
            EXPECT_EQ(client.reusable(), request.find("HTTP/1.1") != std::string_view::npos);
            if (head && body) text = std::to_string(head->status) + " " + *body;
          }
        },
        [&](const std::exception_ptr& thrown) {
          if (thrown) text = "failed";
        });
    client_context.run();
    return text;
  }
};

TEST_F(HttpServerTls, serves_whole_and_streamed_answers) {
  const TestCertificate certificate = make_certificate();
  auto tls = server_tls(certificate.certificate, certificate.key);
  ASSERT_TRUE(tls) << tls.error().message;
  start(*tls);
  EXPECT_EQ(ask_over_tls("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", 3), "200 GET /a ? x=none loopback tls");
  EXPECT_EQ(ask_over_tls("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", 3), "200 one\ntwo\nthree\nend\n");
  EXPECT_EQ(ask_over_tls("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").size(), 4U + (8U << 20));
}

// Without TLS's own end, a client could not tell the answer's end from a cut.
TEST_F(HttpServerTls, says_in_tls_that_an_answer_ends_by_closing) {
  const TestCertificate certificate = make_certificate();
  start(*server_tls(certificate.certificate, certificate.key));
  EXPECT_EQ(ask_over_tls("GET /stream HTTP/1.0\r\n\r\n"), "200 one\ntwo\nthree\nend\n");
}

TEST_F(HttpServerTls, a_client_that_leaves_cancels_its_handler) {
  const TestCertificate certificate = make_certificate();
  start(*server_tls(certificate.certificate, certificate.key));
  std::thread client([this] {
    asio::io_context client_context{1};
    TlsContext tls(TlsContext::tls_client);
    asio::co_spawn(
        client_context,
        [&]() -> asio::awaitable<void> {
          RawPeer raw = connect();
          Stream stream(std::move(*adopt_socket(client_context, ::dup(raw.descriptor()))), tls);
          co_await stream.tls()->async_handshake(TlsSocket::client, asio::deferred);
          const asio::const_buffer request = asio::buffer("GET /ever HTTP/1.1\r\nHost: a\r\n\r\n", 31);
          EXPECT_FALSE(co_await stream.write({&request, 1}));
          while (!waiting) std::this_thread::sleep_for(1ms);
        },
        [](const std::exception_ptr&) {});
    client_context.run();
  });
  client.join();
  EXPECT_TRUE(eventually([this] { return handler_ended && server->connections() == 0; }));
}

TEST_F(HttpServerTls, drops_plain_text_and_silence) {
  options.limits.header_timeout = 100ms;
  const TestCertificate certificate = make_certificate();
  start(*server_tls(certificate.certificate, certificate.key));
  RawPeer plain = connect();
  plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  plain.read_to_end();
  RawPeer silent = connect();
  silent.read_to_end();
  EXPECT_TRUE(eventually([this] { return server->connections() == 0; }));
  EXPECT_EQ(server->statistics().requests, 0U);
}

TEST(ServerTls, refuses_what_does_not_fit_together) {
  const TestCertificate one = make_certificate();
  const TestCertificate other = make_certificate();
  EXPECT_TRUE(server_tls(one.certificate, one.key));
  EXPECT_FALSE(server_tls(one.certificate, other.key));
  EXPECT_FALSE(server_tls("nonsense", one.key));
  EXPECT_FALSE(server_tls(one.certificate, "nonsense"));
}

}  // namespace
}  // namespace molly::http
