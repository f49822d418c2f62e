#include "egress/child_question.h"

#include "egress/connector.h"

namespace molly::egress {
namespace {

namespace asio = boost::asio;

constexpr std::size_t most_answer_bytes = 64 << 10;
constexpr std::string_view one_token_body = R"({"prompt":"1","max_tokens":1,"temperature":0})";

Result<std::string> render(const Endpoint& endpoint, ChildQuestion question) {
  std::string bearer = "Bearer " + std::string(endpoint.key.reveal());
  const http::Header headers[] = {{"Authorization", bearer}, {"Content-Type", "application/json"}};
  auto head =
      question == ChildQuestion::health
          ? http::request_head("GET", "/health", host_header(endpoint), {}, std::nullopt)
          : http::request_head("POST", "/v1/completions", host_header(endpoint), headers, one_token_body.size());
  base::wipe(bearer.data(), bearer.size());
  return head;
}

asio::awaitable<http::Attempt<ProbeAnswer>> exchange(http::Client client, const Endpoint& endpoint,
                                                     std::string_view head, std::string_view body) {
  if (auto sent = co_await client.send(head, body, endpoint.deadlines); !sent) co_return std::unexpected(sent.error());
  auto answered = co_await client.read_head();
  if (!answered) co_return std::unexpected(answered.error());
  auto text = co_await client.read_all(most_answer_bytes);
  if (!text) co_return std::unexpected(text.error());
  co_return ProbeAnswer{answered->status, std::move(*text)};
}

}  // namespace

asio::awaitable<http::Attempt<ProbeAnswer>> ask_child(asio::io_context& context, const Endpoint& endpoint,
                                                      ChildQuestion question) {
  if (endpoint.tier != Tier::t0) {
    co_return http::failed(http::FailureKind::not_permitted, "only model processes of our own are asked this");
  }
  auto head = render(endpoint, question);
  if (!head) co_return http::failed(http::FailureKind::garbage, std::move(head.error().message));
  Connector connector(context, {});
  auto client = co_await connector.connect(endpoint);
  if (!client) co_return std::unexpected(client.error());
  const std::string_view body = question == ChildQuestion::health ? std::string_view() : one_token_body;
  auto answer = co_await exchange(std::move(*client), endpoint, *head, body);
  base::wipe(head->data(), head->size());
  co_return answer;
}

}  // namespace molly::egress
