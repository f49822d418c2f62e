#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "http/server.h"

namespace molly::server {

// Headers that outlive the call they are passed to: names are literals, values owned here.
class ReplyHeaders {
 public:
  ReplyHeaders() = default;
  explicit ReplyHeaders(const http::Exchange& exchange);  // begins with x-request-id

  void add(std::string_view name, std::string value) { entries_.push_back({name, std::move(value)}); }
  std::vector<http::Header> view() const;

 private:
  struct Entry {
    std::string_view name;
    std::string value;
  };
  std::vector<Entry> entries_;
};

boost::asio::awaitable<void> reply_json(http::Exchange& exchange, unsigned status, std::string body,
                                        ReplyHeaders headers);

// OpenAI's error object with the status of its code, Retry-After where the error has one, and x-should-retry so
// that SDKs do not repeat what cannot change.
boost::asio::awaitable<void> reply_error(http::Exchange& exchange, const Error& error, ReplyHeaders headers);

}  // namespace molly::server
