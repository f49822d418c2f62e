#include <boost/asio/this_coro.hpp>
#include <cmath>

#include "base/json_writer.h"
#include "engine/service/api.h"
#include "engine/service/submitted.h"
#include "wire/json_reader.h"
#include "wire/openai.h"

namespace molly::engine {
namespace {

namespace asio = boost::asio;

struct EmbeddingRequest {
  std::vector<std::string> texts;
  std::string adapter;
  Pooling pooling = Pooling::mean;
};

void read_input(wire::JsonReader& in, EmbeddingRequest& out) {
  if (in.peek() == wire::JsonReader::Kind::string) {
    out.texts.push_back(in.string());
  } else {
    in.array([&](std::uint32_t) { out.texts.push_back(in.string()); });
  }
}

void read_pooling(wire::JsonReader& in, EmbeddingRequest& out) {
  const std::string pooling = in.string();
  if (pooling != "mean" && pooling != "last") return in.fail("must be \"mean\" or \"last\"");
  out.pooling = pooling == "mean" ? Pooling::mean : Pooling::last;
}

Result<EmbeddingRequest> read_request(std::string_view body) {
  constexpr std::size_t most_texts = 256;
  EmbeddingRequest out;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key == "input") {
      read_input(in, out);
    } else if (key == "adapter") {
      out.adapter = in.string();
    } else if (key == "pooling") {
      read_pooling(in, out);
    } else if (key == "encoding_format") {
      if (in.string() != "float") in.fail("must be \"float\"");
    } else if (key == "model" || key == "user") {
      in.skip();
    } else {
      in.fail("is not a parameter of embeddings");
    }
  });
  in.expect_end();
  if (!in.ok()) return failure(ErrorCode::invalid_request, in.path() + " " + in.problem(), in.path());
  if (out.texts.empty() || out.texts.size() > most_texts) {
    return failure(ErrorCode::invalid_request, "input must be 1 to 256 texts", "input");
  }
  return out;
}

// Of length one, as clients that compare by inner product expect.
void normalise(std::vector<float>& numbers) {
  double sum = 0;
  for (const float number : numbers) sum += static_cast<double>(number) * static_cast<double>(number);
  const auto factor = static_cast<float>(sum > 0 ? 1 / std::sqrt(sum) : 0);
  for (float& number : numbers) number *= factor;
}

std::string render(const Engine& engine, std::span<const std::vector<float>> embeddings, std::size_t tokens) {
  base::JsonWriter json;
  json.begin_object().member("object", "list").member("model", engine.options().name).key("data").begin_array();
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    json.begin_object().member("object", "embedding").member("index", i).key("embedding").begin_array();
    for (const float number : embeddings[i]) json.value(static_cast<double>(number));
    json.end_array().end_object();
  }
  json.end_array().key("usage").begin_object().member("prompt_tokens", tokens).member("total_tokens", tokens);
  return std::move(json.end_object().end_object()).text();
}

asio::awaitable<Result<std::vector<std::vector<float>>>> collect(Submitted& submitted, std::size_t count) {
  std::vector<std::vector<float>> out(count);
  for (std::size_t ended = 0; ended < count;) {
    for (Addressed& addressed : co_await submitted.receive()) {
      if (auto* embedding = std::get_if<Embedding>(&addressed.letter)) {
        out[addressed.choice] = std::move(embedding->numbers);
        normalise(out[addressed.choice]);
      } else if (auto* error = std::get_if<Error>(&addressed.letter)) {
        co_return std::unexpected(std::move(*error));
      } else if (std::holds_alternative<Ended>(addressed.letter)) {
        ++ended;
      }
    }
  }
  co_return out;
}

}  // namespace

asio::awaitable<void> Api::embed(http::Exchange& exchange) {
  const auto request = read_request(exchange.body());
  if (!request) co_return co_await answer(exchange, std::unexpected(request.error()));
  std::vector<std::pair<std::string, float>> wanted;
  if (!request->adapter.empty()) wanted.emplace_back(request->adapter, 1.0F);
  const auto adapters = engine_.find_adapters(wanted);
  if (!adapters) co_return co_await answer(exchange, std::unexpected(adapters.error()));
  Submitted submitted(engine_, co_await asio::this_coro::executor);
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < request->texts.size(); ++i) {
    GenerationRequest one;
    one.prompt = engine_.vocabulary().tokenize(request->texts[i], SpecialTokens::as_text, Beginning::as_model_wants);
    one.pooling = request->pooling;
    one.adapters = *adapters;
    one.sink = submitted.sink(i, std::make_shared<AnswerForm>(), {});
    tokens += one.prompt.size();
    submitted.add(std::move(one));
  }
  const auto embeddings = co_await collect(submitted, request->texts.size());
  if (!embeddings) co_return co_await answer(exchange, std::unexpected(embeddings.error()));
  co_await answer(exchange, render(engine_, *embeddings, tokens));
}

}  // namespace molly::engine
