#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/request.h"

// How llama-server is asked for the exact number of a prompt's tokens, without a token being generated.
namespace molly::wire {

struct CountQuery {
  std::string_view path;  // from the server's root, e.g. "/tokenize"
  std::string body;
};

// One query for each prompt of the request, for which the largest answer counts; none where only the target's own
// refusal can tell (prompts given as token ids).
std::vector<CountQuery> count_queries(const Request& request);

// The number in an answer to such a query. upstream_failed when there is none.
Result<std::uint64_t> parse_token_count(std::string_view body);

}  // namespace molly::wire
