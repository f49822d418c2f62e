#pragma once

#include <string>

#include "core/error.h"
#include "wire/json_members.h"

namespace molly::wire {

// The members of an upstream's "error" object.
struct UpstreamError {
  std::string message;
  std::string type;
  std::string code;
  std::string param;
  int status = 0;  // when "code" is a number
};

// Reads the value of an "error" member: an object or a string.
UpstreamError read_upstream_error(JsonReader& in);

// `http_status` is 0 for an error within a stream.
Error to_error(const UpstreamError& upstream, int http_status);

}  // namespace molly::wire
