// Any bytes are a request or a typed error; a request that was read leaves as the same JSON value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "canonical.h"
#include "wire/openai.h"

namespace {

using namespace molly;

void check(std::string_view body, const Result<Request>& request) {
  if (!request) {
    if (request.error().message.empty() || request.error().code != ErrorCode::invalid_request) std::abort();
    return;
  }
  // Inside members without a type duplicates are allowed, and the canonical form takes the last: both sides alike.
  if (wire::canonical(wire::encode_request(*request)) != wire::canonical(body)) std::abort();
  if (wire::token_upper_bound(*request) == 0) std::abort();
  wire::unsupported_parameters(*request, {.tools = false, .image = false});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check(body, wire::parse_chat_request(body));
  check(body, wire::parse_completion_request(body));
  return 0;
}
