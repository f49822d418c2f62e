#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/secret.h"
#include "engine/service/api.h"
#include "engine/service/engine.h"
#include "engine/service/loading.h"
#include "http/server.h"

namespace molly::apps {

// Listens at once, loads the model meanwhile, serves until a signal, and then lets what runs come to its end for as
// long as the second signal allows.
class Service {
 public:
  // `loaded_bytes`: what the loaded model holds resident, for the progress of loading.
  Service(engine::EngineOptions options, base::Secret key, std::uint64_t loaded_bytes);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Blocks. The error is why it could not listen or load.
  Result<void> run(const std::string& address);

 private:
  boost::asio::awaitable<void> answer(http::Exchange& exchange);
  void start_loading();
  void loaded(Result<std::unique_ptr<engine::Engine>> engine);
  void wait_for_signal();
  void stop_when_done();

  engine::EngineOptions options_;
  base::Secret key_;
  std::string address_;
  // What is left of requests when the context goes still speaks to the engine.
  std::unique_ptr<engine::Engine> engine_;
  std::optional<engine::Api> api_;  // from the moment the model is loaded
  boost::asio::io_context context_{1};
  engine::Loading loading_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<http::Server> server_;
  std::thread loader_;
  Result<void> outcome_;
  bool draining_ = false;
};

}  // namespace molly::apps
