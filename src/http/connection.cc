#include "http/connection.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

namespace molly::http {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t first_buffer_bytes = 8 << 10;
constexpr std::size_t body_buffer_bytes = 64 << 10;
constexpr std::size_t bytes_for_a_second = 16 << 10;  // the least speed of a body
constexpr milliseconds goodbye_time{2'000};
constexpr milliseconds turning_away_time{1'000};
constexpr unsigned requests_in_a_row = 16;  // of one pipelining client before others get their turn

}  // namespace

Connection::Connection(std::shared_ptr<ServerShared> shared, Stream stream, Peer peer, Welcome welcome)
    : shared_(std::move(shared)),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      welcome_(welcome),
      deadline_(shared_->context, [this] { on_deadline(); }) {
  shared_->connections.insert(this);
  if (welcome_ == Welcome::refused) {
    ++shared_->refusing;
  } else {
    shared_->open.add();
    shared_->options.count->open.fetch_add(1, std::memory_order_relaxed);
  }
}

Connection::~Connection() {
  shared_->connections.erase(this);
  if (welcome_ == Welcome::refused) {
    --shared_->refusing;
  } else {
    shared_->open.subtract();
    shared_->options.count->open.fetch_sub(1, std::memory_order_relaxed);
  }
}

auto Connection::input() {
  return asio::async_initiate<const asio::deferred_t, void()>([this](auto handler) { waiting_ = std::move(handler); },
                                                              asio::deferred);
}

void Connection::start(const std::shared_ptr<Connection>& connection) {
  asio::co_spawn(connection->shared_->context, connection->run(),
                 asio::bind_cancellation_slot(connection->stop_.slot(), [connection](const std::exception_ptr&) {
                   // An exception here is a cancellation, or no memory: the connection ends either way.
                   connection->deadline_.disarm();
                   connection->ended_ = true;
                   connection->stream_.close();
                 }));
}

void Connection::close_if_idle() {
  if (!waiting_ || parser_.begun() || begin_ != filled_) return;
  stopped_ = true;
  wake();
}

void Connection::cancel() {
  stopped_ = true;
  if (waiting_) return wake();
  stop_.emit(asio::cancellation_type::terminal);
  stream_.close();
}

void Connection::abandon() {
  stream_.close();
  auto forgotten = std::move(waiting_);
}

asio::awaitable<void> Connection::run() {
  if (stream_.tls() != nullptr && !co_await shake_hands()) co_return;
  next_request();
  if (welcome_ == Welcome::refused) {
    co_await turn_away();
  } else {
    co_await serve();
  }
}

asio::awaitable<bool> Connection::shake_hands() {
  deadline_.arm(shared_->options.limits.header_timeout);
  const auto [error] = co_await stream_.tls()->async_handshake(TlsSocket::server, asio::as_tuple(asio::deferred));
  deadline_.disarm();
  peer_.tls = true;
  co_return !error;
}

asio::awaitable<void> Connection::serve() {
  unsigned in_a_row = 0;
  for (;;) {
    switch (parse()) {
      case Input::need_more:
        arm_for_input();
        read_more();
        co_await input();
        in_a_row = 0;
        break;
      case Input::request:
        if (!co_await handle()) co_return co_await say_goodbye();
        next_request();
        if (++in_a_row % requests_in_a_row == 0) co_await asio::post(shared_->context, asio::deferred);
        break;
      case Input::problem: co_return co_await answer_problem(problem_);
      case Input::end: stream_.close(); co_return;
    }
  }
}

// Over the limit of connections: an answer that says so, once the client has sent something.
asio::awaitable<void> Connection::turn_away() {
  deadline_.arm(turning_away_time);
  read_more();
  co_await input();
  if (!ended_ && !stopped_) co_await answer_problem({503, "the server has too many connections: try again later"});
}

void Connection::next_request() {
  const ServerLimits& limits = shared_->options.limits;
  parser_.reset(limits.max_header_bytes, limits.max_body_bytes);
  answer_ = Answer::none;
  out_.clear();
  continue_sent_ = false;
  phase_ = Phase::none;
  body_steps_ = 0;
}

Connection::Input Connection::parse() {
  if (ended_ || stopped_) return Input::end;
  if (begin_ < filled_) {
    const auto taken = parser_.feed({bytes_.get() + begin_, filled_ - begin_});
    if (!taken) {
      problem_ = taken.error();
      return Input::problem;
    }
    begin_ += *taken;
    if (parser_.done()) return Input::request;
  }
  if (expired_) {
    if (!parser_.begun()) return Input::end;
    problem_ = {408, "the request did not come in time"};
    return Input::problem;
  }
  if (shared_->draining && !parser_.begun()) return Input::end;
  if (parser_.head_done() && parser_.head().expects_continue && !continue_sent_) send_continue();
  return Input::need_more;
}

void Connection::arm_for_input() {
  const ServerLimits& limits = shared_->options.limits;
  const Phase phase = parser_.head_done() ? Phase::body : parser_.begun() ? Phase::head : Phase::idle;
  if (phase != phase_) {
    phase_ = phase;
    deadline_.arm(phase == Phase::body   ? limits.body_timeout
                  : phase == Phase::head ? limits.header_timeout
                                         : limits.idle_timeout);
  } else if (phase == Phase::body && parser_.body().size() / bytes_for_a_second > body_steps_) {
    const std::size_t steps = parser_.body().size() / bytes_for_a_second;
    deadline_.extend(std::chrono::seconds(steps - body_steps_));
    body_steps_ = steps;
  }
}

void Connection::send_continue() {
  static constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
  continue_sent_ = true;
  // Clients wait a moment only, so one that cannot take these few bytes now does without. Over TLS, where
  // a write may not be given up half-way, all do.
  if (stream_.tls() != nullptr || parser_.head().http_1_0) return;
  error_code ignored;
  const asio::const_buffer buffer(text.data(), text.size());
  stream_.write_now({&buffer, 1}, ignored);
}

// Room for at least one byte behind filled_. No read may be outstanding.
bool Connection::make_room() {
  if (begin_ == filled_) begin_ = filled_ = 0;
  const bool large_body = parser_.head_done() && !parser_.done() && parser_.body().size() >= first_buffer_bytes;
  const std::size_t wanted = large_body ? body_buffer_bytes : first_buffer_bytes;
  if (filled_ == 0 && (capacity_ < wanted || (capacity_ > first_buffer_bytes && !large_body))) {
    bytes_ = std::make_unique_for_overwrite<char[]>(wanted);
    capacity_ = wanted;
  }
  if (begin_ > 0 && filled_ == capacity_) {
    std::memmove(bytes_.get(), bytes_.get() + begin_, filled_ - begin_);
    filled_ -= begin_;
    begin_ = 0;
  }
  if (filled_ < capacity_ || handling_) return filled_ < capacity_;
  // A single line of the head may fill the buffer: the parser says where that ends.
  const std::size_t larger = capacity_ * 2;
  auto bytes = std::make_unique_for_overwrite<char[]>(larger);
  std::memcpy(bytes.get(), bytes_.get(), filled_);
  bytes_ = std::move(bytes);
  capacity_ = larger;
  return true;
}

void Connection::read_more() {
  if (reading_ || ended_ || !make_room()) return;
  reading_ = true;
  stream_.start_read(
      asio::mutable_buffer(bytes_.get() + filled_, capacity_ - filled_),
      [self = shared_from_this()](const error_code& error, std::size_t size) { self->on_read(error, size); });
}

void Connection::on_read(const error_code& error, std::size_t size) {
  reading_ = false;
  filled_ += size;
  if (error) ended_ = true;
  if (waiting_) return wake();
  if (!handling_) return;
  if (!ended_) return read_more();
  shared_->abandoned.add();
  stop_.emit(asio::cancellation_type::terminal);
}

void Connection::on_deadline() {
  expired_ = true;
  shared_->timeouts.add();
  if (waiting_) return wake();
  stream_.close();
}

void Connection::wake() {
  auto waiting = std::move(waiting_);
  std::move(waiting)();
}

asio::awaitable<bool> Connection::handle() {
  keep_alive_ = head().keep_alive;
  without_body_ = head().method == "HEAD";
  deadline_.disarm();
  read_more();
  co_await run_handler();
  if (ended_ || stopped_ || expired_) {
    stream_.close();
    co_return false;
  }
  if (answer_ == Answer::streaming) {
    break_off();
    co_return false;
  }
  if (answer_ == Answer::none) {
    co_await answer_problem({500, "an internal error: the request was not answered"});
    co_return false;
  }
  co_return keep_alive_;
}

asio::awaitable<void> Connection::run_handler() {
  struct Running {
    explicit Running(Connection& connection_) : connection(connection_) {
      connection.handling_ = true;
      connection.shared_->active.add();
      connection.shared_->requests.add();
    }
    ~Running() {
      connection.handling_ = false;
      connection.shared_->active.subtract();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    Connection& connection;
  };
  const Running running(*this);
  Exchange exchange(*this);
  try {
    co_await shared_->options.handler(exchange);
  } catch (const std::exception& exception) {
    if (!ended_ && !stopped_ && shared_->options.on_fault) shared_->options.on_fault(exception.what());
  }
}

asio::awaitable<void> Connection::answer_problem(Problem problem) {
  if (problem.status < 500 || problem.status == 505) shared_->malformed.add();
  answer_ = Answer::none;
  keep_alive_ = false;
  without_body_ = head().method == "HEAD";
  expired_ = false;
  const std::string body = shared_->options.error_body(problem.status, problem.message);
  const Header headers[] = {{"Content-Type", "application/json"}, {"Retry-After", "1"}};
  const bool later = problem.status == 503;
  if (co_await respond(problem.status, std::span(headers).first(later ? 2 : 1), body)) co_await say_goodbye();
}

// Closing with unread input would reset the connection, and the client might lose our answer: it is told
// that nothing more comes, and what it still sends is thrown away for a moment.
asio::awaitable<void> Connection::say_goodbye() {
  if (ended_ || stopped_ || !stream_.socket().is_open()) co_return;
  expired_ = false;
  deadline_.arm(goodbye_time);
  if (auto* tls = stream_.tls()) co_await tls->async_shutdown(asio::as_tuple(asio::deferred));
  stream_.end_writing();
  while (!ended_ && !stopped_ && !expired_) {
    if (!reading_) begin_ = filled_ = 0;
    read_more();
    co_await input();
  }
  stream_.close();
}

// The answer ends in the middle: a reset tells even those clients that take a close for its end.
void Connection::break_off() {
  error_code ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_.close();
}

}  // namespace molly::http
