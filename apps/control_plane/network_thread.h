#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>

#include "egress/door.h"
#include "http/server.h"
#include "server/endpoints.h"

namespace molly::apps {

// One network thread: its own io_context, HTTP server and door, so that a connection and what it causes
// never leave the thread.
class NetworkThread {
 public:
  NetworkThread(server::Endpoints& endpoints, const http::ServerLimits& limits,
                std::shared_ptr<http::ConnectionCount> count, egress::DoorOptions door_options);
  ~NetworkThread();
  NetworkThread(const NetworkThread&) = delete;
  NetworkThread& operator=(const NetworkThread&) = delete;

  // Takes the descriptor over. Before start(), or from any thread after it.
  void listen(int descriptor, std::shared_ptr<http::TlsContext> tls);
  void start();
  void set_limits(const http::ServerLimits& limits);
  void begin_drain();
  // Breaks off every answer under way, telling the client why.
  void interrupt_all(const Error& reason);
  // Ends the thread; open connections are cut.
  void stop();

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::unique_ptr<egress::Door> door_;
  std::unique_ptr<server::ThreadContext> thread_context_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

}  // namespace molly::apps
