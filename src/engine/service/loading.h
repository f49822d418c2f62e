#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>

#include "http/server.h"

namespace molly::engine {

// Answers while the model is being loaded: 503 everywhere, as llama-server does. /health says how far it is:
//   {"status":"loading","progress":0.42}
// Everything else is a typed error with Retry-After.
class Loading {
 public:
  // `expected_bytes`: what of this process will be resident when the model is loaded, beyond what is now.
  explicit Loading(std::uint64_t expected_bytes);

  // From 0, never falling, below 1.
  double progress();
  boost::asio::awaitable<void> handle(http::Exchange& exchange);

 private:
  std::uint64_t resident_before_;
  std::uint64_t expected_bytes_;
  double progress_ = 0;
};

}  // namespace molly::engine
