#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>

#include "egress/door.h"

namespace molly::egress {

// What the supervisor asks a model process of our own before it serves. The bytes are written here, so that nothing
// of anyone can be in them and no permit is needed.
enum class ChildQuestion : std::uint8_t {
  health,     // GET /health
  one_token,  // POST /v1/completions for one token of a fixed prompt
};

// Over a connection of its own to a T0 endpoint; any other tier fails as not_permitted. The endpoint's deadlines
// apply; it must live until the answer is there.
boost::asio::awaitable<http::Attempt<ProbeAnswer>> ask_child(boost::asio::io_context& context, const Endpoint& endpoint,
                                                             ChildQuestion question);

}  // namespace molly::egress
