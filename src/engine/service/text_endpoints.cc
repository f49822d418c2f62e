#include "base/json_writer.h"
#include "engine/service/api.h"
#include "engine/service/generate.h"
#include "wire/json_reader.h"
#include "wire/openai.h"

namespace molly::engine {
namespace {

std::unexpected<Error> refuse(const wire::JsonReader& in) {
  return failure(ErrorCode::invalid_request, in.path() + " " + in.problem(), in.path());
}

struct TokenizeRequest {
  std::string content;
  bool add_special = false;
  bool parse_special = true;
};

Result<TokenizeRequest> read_tokenize(std::string_view body) {
  TokenizeRequest out;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key == "content") {
      out.content = in.string();
    } else if (key == "add_special") {
      out.add_special = in.boolean();
    } else if (key == "parse_special") {
      out.parse_special = in.boolean();
    } else {
      in.fail("is not a parameter of /tokenize");
    }
  });
  in.expect_end();
  if (!in.ok()) return refuse(in);
  return out;
}

}  // namespace

Result<std::string> tokenize_json(const Engine& engine, std::string_view body) {
  const auto request = read_tokenize(body);
  if (!request) return std::unexpected(request.error());
  const auto tokens = engine.vocabulary().tokenize(
      request->content, request->parse_special ? SpecialTokens::parsed : SpecialTokens::as_text,
      request->add_special ? Beginning::as_model_wants : Beginning::bare);
  base::JsonWriter json;
  json.begin_object().key("tokens").begin_array();
  for (const Token token : tokens) json.value(token);
  return std::move(json.end_array().end_object()).text();
}

Result<std::string> detokenize_json(const Engine& engine, std::string_view body) {
  std::vector<Token> tokens;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key != "tokens") return in.fail("is not a parameter of /detokenize");
    in.array([&](std::uint32_t) {
      tokens.push_back(static_cast<Token>(in.unsigned_integer(engine.vocabulary().size() - 1)));
    });
  });
  in.expect_end();
  if (!in.ok()) return refuse(in);
  base::JsonWriter json;
  return std::move(json.begin_object().member("content", engine.vocabulary().detokenize(tokens)).end_object()).text();
}

Result<std::string> apply_template_json(const Engine& engine, std::string_view body) {
  const auto request = wire::parse_chat_request(body);
  if (!request) return std::unexpected(request.error());
  const auto parameters = read_parameters(*request);
  if (!parameters) return std::unexpected(parameters.error());
  const auto prompt = render_chat(engine, *request, *parameters);
  if (!prompt) return std::unexpected(prompt.error());
  base::JsonWriter json;
  return std::move(json.begin_object().member("prompt", *prompt).end_object()).text();
}

Result<std::string> count_json(const Engine& engine, std::string_view body) {
  const auto request = wire::parse_chat_request(body);
  if (!request) return std::unexpected(request.error());
  const auto parameters = read_parameters(*request);
  if (!parameters) return std::unexpected(parameters.error());
  const auto prompts = read_prompts(engine, *request, *parameters);
  if (!prompts) return std::unexpected(prompts.error());
  base::JsonWriter json;
  json.begin_object().member("input_tokens", prompts->tokens.front().size()).member("object", "response.input_tokens");
  return std::move(json.end_object()).text();
}

}  // namespace molly::engine
