#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "http/header.h"

// How the command line talks to the server of the same person: over its unix socket, or a loopback port.
// Blocking; one connection for each request.
namespace molly::egress {

struct LocalRequest {
  std::string method = "GET";
  std::string path;  // with query
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::milliseconds idle{600'000};  // longest silence
};

struct LocalAnswer {
  unsigned status = 0;
  http::HeaderList headers;
  std::string body;  // empty where `on_body` took it
};

// Return false to stop: the connection is closed and the answer returned.
using OnBody = std::function<bool(unsigned status, std::string_view bytes)>;

// `where`: a socket's path, or "127.0.0.1:7411" (loopback addresses only). Fails (unavailable) where no
// server answers.
Result<LocalAnswer> ask_local(const std::string& where, const LocalRequest& request, const OnBody& on_body = {});

}  // namespace molly::egress
