#pragma once

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>
#include <string>
#include <unordered_set>

#include "http/deadline.h"
#include "http/message_parser.h"
#include "http/server.h"

namespace molly::http {

// Written by one thread, read by any.
class Counter {
 public:
  void add() { value_.store(value_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void subtract() { value_.store(value_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// What the connections of one server share; all on its thread.
struct ServerShared {
  ServerShared(boost::asio::io_context& context_, ServerOptions options_)
      : context(context_), options(std::move(options_)) {}

  boost::asio::io_context& context;
  ServerOptions options;
  bool draining = false;
  std::unordered_set<Connection*> connections;
  std::size_t refusing = 0;  // connections over the limit that still hear why
  Counter active, open, accepted, requests, refused, malformed, timeouts, abandoned;
};

// One client's connection: a coroutine that reads a request, runs the handler, and begins again. A read is
// outstanding even while the handler runs: it brings the next request's bytes, or tells that the client left.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum class Welcome : std::uint8_t { served, refused };

  Connection(std::shared_ptr<ServerShared> shared, Stream stream, Peer peer, Welcome welcome);
  ~Connection();

  static void start(const std::shared_ptr<Connection>& connection);
  void close_if_idle();
  void cancel();
  // Lets go of the coroutine without running it: the server is gone.
  void abandon();

  // For Exchange.
  const RequestHead& head() const { return parser_.head(); }
  const std::string& body() const { return parser_.body(); }
  const Peer& peer() const { return peer_; }
  bool client_gone() const { return ended_; }
  bool draining() const { return shared_->draining; }
  bool started() const { return answer_ != Answer::none; }
  bool finished() const { return answer_ == Answer::finished; }
  boost::asio::awaitable<Result<void>> respond(unsigned status, std::span<const Header> headers, std::string_view body);
  Result<void> start_stream(unsigned status, std::span<const Header> headers);
  boost::asio::awaitable<Result<void>> write(std::string_view bytes);
  boost::asio::awaitable<Result<void>> finish(std::string_view last);

 private:
  enum class Answer : std::uint8_t { none, streaming, finished };
  enum class Input : std::uint8_t { need_more, request, problem, end };

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<void> serve();
  boost::asio::awaitable<void> turn_away();
  boost::asio::awaitable<bool> handle();
  boost::asio::awaitable<void> run_handler();
  boost::asio::awaitable<void> answer_problem(Problem problem);
  boost::asio::awaitable<void> say_goodbye();
  void break_off();

  Input parse();
  void read_more();
  void on_read(const boost::system::error_code& error, std::size_t size);
  void on_deadline();
  void arm_for_input();
  void send_continue();
  bool make_room();
  void next_request();
  void wake();
  auto input();

  Result<void> begin_head(unsigned status, std::span<const Header> headers);
  void add_length(std::size_t size);
  boost::asio::awaitable<Result<void>> fails(Error error);
  boost::asio::awaitable<Result<void>> send(std::array<boost::asio::const_buffer, 4> buffers);
  Error write_error();

  std::shared_ptr<ServerShared> shared_;
  Stream stream_;
  Peer peer_;
  Welcome welcome_;
  Deadline deadline_;
  boost::asio::cancellation_signal stop_;

  // Input: bytes_[begin_, filled_) are not parsed yet; a read writes behind filled_.
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t filled_ = 0;
  RequestParser parser_;
  Problem problem_{};
  boost::asio::any_completion_handler<void()> waiting_;  // the coroutine, while it waits for input
  bool reading_ = false;
  bool handling_ = false;
  bool ended_ = false;    // the client closed, or the connection broke
  bool expired_ = false;  // a deadline passed
  bool stopped_ = false;  // cancelled by the server
  bool continue_sent_ = false;
  enum class Phase : std::uint8_t { none, idle, head, body };
  Phase phase_ = Phase::none;   // what the deadline is armed for
  std::size_t body_steps_ = 0;  // how many times the body's deadline was moved

  // Output.
  Answer answer_ = Answer::none;
  std::string out_;  // head that goes out with the next write
  bool keep_alive_ = false;
  bool chunked_ = false;
  bool without_body_ = false;  // HEAD
  char chunk_line_[24] = {};
};

}  // namespace molly::http
