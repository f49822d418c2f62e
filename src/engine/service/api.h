#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "engine/service/engine.h"
#include "http/server.h"

namespace molly::engine {

// The engine's HTTP interface: OpenAI's endpoints with the fields of parameters.h, tools (called in the form of the
// model's chat template), reasoning as reasoning_content, and
//   GET  /health                          200; Loading answers before the model is there
//   GET  /metrics                         Prometheus
//   GET  /adapters                        all adapters with their states
//   POST /adapters                        {"name","path"}: registers one; 409 when the name is taken
//   POST /adapters/prefetch               {"name"}: will be wanted soon
//   DELETE /adapters/NAME
//   POST /drafts                          {"channel","position","tokens"}: guesses for the request with that
//   draft_channel,
//                                         from so many tokens of prompt and answer on; 200 also when it has ended
//   POST /tokenize, /detokenize, /apply-template, /v1/chat/completions/input_tokens  as llama-server has them
class Api {
 public:
  // `engine` must outlive the API. `key`: what callers send as a bearer token; empty: anybody who can connect may ask.
  Api(Engine& engine, base::Secret key) : engine_(engine), key_(std::move(key)) {}

  boost::asio::awaitable<void> handle(http::Exchange& exchange);

 private:
  bool may_ask(const http::Exchange& exchange) const;
  boost::asio::awaitable<void> generate(http::Exchange& exchange, Endpoint endpoint);
  boost::asio::awaitable<void> embed(http::Exchange& exchange);
  boost::asio::awaitable<void> add_adapter(http::Exchange& exchange);
  boost::asio::awaitable<void> answer(http::Exchange& exchange, const Result<std::string>& json);
  Result<std::string> get(std::string_view path);
  Result<std::string> post(std::string_view path, std::string_view body);

  Engine& engine_;
  base::Secret key_;
};

// JSON and text of single endpoints.
std::string adapters_json(const std::vector<AdapterStatus>& adapters);
std::string metrics_text(const EngineStatus& status);
Result<std::string> tokenize_json(const Engine& engine, std::string_view body);
Result<std::string> detokenize_json(const Engine& engine, std::string_view body);
Result<std::string> apply_template_json(const Engine& engine, std::string_view body);
Result<std::string> count_json(const Engine& engine, std::string_view body);

}  // namespace molly::engine
