#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "config/live.h"
#include "egress/door.h"
#include "http/server.h"
#include "members/keys.h"
#include "pipeline/conversation.h"
#include "pipeline/services.h"
#include "server/access.h"
#include "server/metrics.h"

namespace molly::server {

// What the server cannot do by itself and asks of the program around it. Called on network threads: none may block.
struct Administration {
  std::function<std::string()> status_json;
  std::function<bool()> ready;                 // at least one target can answer
  std::function<std::uint64_t()> connections;  // open ones, of all network threads
  std::function<void()> request_reload;
  std::function<void()> request_restart;
  std::function<Result<void>(std::string_view model)> load_model;
  std::function<Result<void>(std::string_view model)> unload_model;
};

// What one network thread has for its own: touched on that thread only.
struct ThreadContext {
  egress::Door& door;
  std::vector<pipeline::Conversation*> conversations;  // being answered

  // Ends them: streams get a typed error event, others an error answer.
  void interrupt_all(const Error& reason);
};

// All HTTP endpoints. One object serves every network thread.
class Endpoints {
 public:
  struct Limits {
    AccessRules access;
    std::uint32_t max_in_flight = 512;
  };

  Endpoints(pipeline::Services& services, members::Keys& keys, Metrics& metrics, config::Live<Limits>& limits,
            Administration administration);

  // Answers one request on the thread that `thread` belongs to.
  boost::asio::awaitable<void> handle(http::Exchange& exchange, ThreadContext& thread);

  std::uint64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  boost::asio::awaitable<void> generate(http::Exchange& exchange, ThreadContext& thread, const Identity& identity,
                                        Endpoint endpoint);
  boost::asio::awaitable<void> models(http::Exchange& exchange, const Identity& identity, std::string_view name);
  boost::asio::awaitable<void> health(http::Exchange& exchange, bool ready);
  boost::asio::awaitable<void> metrics(http::Exchange& exchange);
  boost::asio::awaitable<void> administer(http::Exchange& exchange, std::string_view path);

  pipeline::Services& services_;
  members::Keys& keys_;
  Metrics& metrics_;
  config::Live<Limits>& limits_;
  Administration administration_;
  std::atomic<std::uint64_t> in_flight_{0};
};

}  // namespace molly::server
