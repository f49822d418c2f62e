#include "wire/token_count.h"

#include <optional>

#include "base/json_writer.h"
#include "wire/json_reader.h"
#include "wire/openai.h"

namespace molly::wire {

std::vector<CountQuery> count_queries(const Request& request) {
  if (request.endpoint == Endpoint::chat) return {{"/v1/chat/completions/input_tokens", encode_request(request)}};
  std::vector<CountQuery> queries;
  for (const std::string& prompt : request.prompts) {
    base::JsonWriter json;
    json.begin_object().member("content", prompt).member("add_special", true).member("parse_special", true);
    queries.push_back({"/tokenize", std::move(json.end_object()).text()});
  }
  return queries;
}

Result<std::uint64_t> parse_token_count(std::string_view body) {
  JsonReader in(body);
  std::optional<std::uint64_t> count;
  in.object([&](std::string_view key) {
    if (key == "input_tokens") {
      count = in.unsigned_integer();
    } else if (key == "tokens") {
      std::uint64_t tokens = 0;
      in.array([&](std::uint32_t) {
        in.skip();
        ++tokens;
      });
      count = tokens;
    } else {
      in.skip();
    }
  });
  in.expect_end();
  if (in.ok() && count) return *count;
  return failure(ErrorCode::upstream_failed, "the target's count of tokens cannot be understood");
}

}  // namespace molly::wire
