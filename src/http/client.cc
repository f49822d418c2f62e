#include "http/client.h"

#include <sys/socket.h>

#include <charconv>

#include "http/deadline.h"
#include "http/message_parser.h"
#include "http/remaining.h"

namespace molly::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr unsigned most_interim_responses = 16;
constexpr std::size_t bytes_for_a_second = 16 << 10;

FailureKind kind_of(ResponseParser::Problem problem) {
  switch (problem) {
    case ResponseParser::Problem::head_too_large: return FailureKind::head_too_large;
    case ResponseParser::Problem::truncated: return FailureKind::truncated;
    case ResponseParser::Problem::garbage: break;
  }
  return FailureKind::garbage;
}

bool is_end(const error_code& error) {
  return error == asio::error::eof || error == asio::ssl::error::stream_truncated;
}

bool is_target(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f) return false;
  }
  return !text.empty();
}

}  // namespace

Result<std::string> request_head(std::string_view method, std::string_view target, std::string_view host,
                                 std::span<const Header> headers, std::optional<std::uint64_t> body_size) {
  if (!is_header_name(method) || !is_target(target) || !is_header_value(host)) {
    return failure(ErrorCode::internal, "the request line cannot be written");
  }
  std::string head;
  head.reserve(512);
  head.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(host).append("\r\n");
  for (const Header& header : headers) {
    if (!is_header_name(header.name) || !is_header_value(header.value)) {
      return failure(ErrorCode::internal, "a header of the request is not valid", std::string(header.name));
    }
    head.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (body_size) {
    char digits[24];
    head.append("Content-Length: ").append(digits, std::to_chars(digits, digits + sizeof digits, *body_size).ptr);
    head.append("\r\n");
  }
  return head.append("\r\n");
}

struct Client::State {
  State(Stream stream_, ClientLimits limits_)
      : stream(std::move(stream_)), limits(limits_), deadline(stream.context(), [this] {
          expired = true;
          stream.close();
        }) {}

  Stream stream;
  ClientLimits limits;
  ClientDeadlines deadlines;
  Deadline deadline;
  ResponseParser parser;
  std::unique_ptr<char[]> bytes;
  std::size_t capacity = 0;
  std::size_t begin = 0;
  std::size_t filled = 0;
  bool expired = false;
  bool broken = false;  // failed, or the peer closed: not to be used again
  bool received = false;
  bool answered = false;  // a final head was read since send()
  std::uint64_t requests = 0;

  // Marks the connection as unusable.
  std::unexpected<Failure> fail(FailureKind kind) {
    broken = true;
    deadline.disarm();
    return failed(kind);
  }

  FailureKind read_failure(const error_code& error) const {
    if (expired) return received ? FailureKind::idle_stall : FailureKind::first_byte_timeout;
    if (error == asio::error::operation_aborted) return FailureKind::cancelled;
    if (is_end(error)) return received ? FailureKind::truncated : FailureKind::reset;
    return error.category() == asio::error::get_ssl_category() ? FailureKind::tls : FailureKind::reset;
  }

  void make_room() {
    if (begin == filled) begin = filled = 0;
    const std::size_t wanted = std::max(limits.read_bytes, capacity);
    if (filled < wanted && capacity == wanted) return;
    if (begin > 0) {
      std::memmove(bytes.get(), bytes.get() + begin, filled - begin);
      filled -= begin;
      begin = 0;
    }
    if (filled < capacity) return;
    const std::size_t larger = std::max(limits.read_bytes, capacity * 2);
    auto grown = std::make_unique_for_overwrite<char[]>(larger);
    if (filled > 0) std::memcpy(grown.get(), bytes.get(), filled);
    bytes = std::move(grown);
    capacity = larger;
  }

  // One read into the buffer, whose deadline the caller armed.
  asio::awaitable<error_code> fill() {
    make_room();
    const auto [error, size] = co_await stream.read(asio::buffer(bytes.get() + filled, capacity - filled));
    filled += size;
    received = received || size > 0;
    co_return error;
  }

  std::expected<ResponseParser::Taken, ResponseParser::Problem> step() {
    auto taken = parser.feed({bytes.get() + begin, filled - begin});
    if (taken) begin += taken->size;
    return taken;
  }

  // All of the body that the buffer holds, its pieces moved together.
  Attempt<std::string_view> take_body() {
    char* first = nullptr;
    char* end = nullptr;
    while (begin < filled && !parser.done()) {
      const auto taken = step();
      if (!taken) return fail(kind_of(taken.error()));
      if (taken->size == 0) break;
      if (taken->body.empty()) continue;
      char* piece = bytes.get() + (taken->body.data() - bytes.get());
      if (first == nullptr) first = end = piece;
      if (end != piece) std::memmove(end, piece, taken->body.size());
      end += taken->body.size();
    }
    return std::string_view(first, static_cast<std::size_t>(end - first));
  }
};

Client::Client(Stream stream, ClientLimits limits) : state_(std::make_unique<State>(std::move(stream), limits)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

asio::awaitable<Attempt<void>> Client::send(std::string_view head, std::string_view body,
                                            const ClientDeadlines& deadlines) {
  State& state = *state_;
  ++state.requests;
  state.deadlines = deadlines;
  state.received = state.answered = false;
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(head), asio::buffer(body)};
  Remaining remaining(buffers);
  error_code error;
  if (state.stream.tls() == nullptr) {
    remaining.consume(state.stream.write_now(remaining.left(), error));
    if (error == asio::error::would_block) error = {};
  }
  if (!error && !remaining.empty()) {
    const auto size = asio::buffer_size(remaining.left());
    state.deadline.arm(deadlines.write + std::chrono::seconds(size / bytes_for_a_second));
    error = co_await state.stream.write(remaining.left());
    state.deadline.disarm();
  }
  if (!error) co_return Attempt<void>();
  if (state.expired) co_return state.fail(FailureKind::write_timeout);
  if (error == asio::error::operation_aborted) co_return state.fail(FailureKind::cancelled);
  // The peer closed; it may have said why before, so the read decides.
  state.broken = true;
  co_return Attempt<void>();
}

asio::awaitable<Attempt<ResponseHead>> Client::read_head(Body body) {
  State& state = *state_;
  const auto expected_body = body == Body::none ? ResponseParser::Body::none : ResponseParser::Body::as_announced;
  state.parser.reset(state.limits.max_head_bytes, expected_body);
  state.deadline.arm(state.deadlines.first_byte);
  unsigned interim = 0;
  for (;;) {
    while (state.begin < state.filled && !state.parser.head_done()) {
      const auto taken = state.step();
      if (!taken) co_return state.fail(kind_of(taken.error()));
      if (taken->size == 0) break;
    }
    if (state.parser.head_done()) {
      const unsigned status = state.parser.status();
      if (status >= 200) break;
      if (status == 101 || ++interim > most_interim_responses) co_return state.fail(FailureKind::garbage);
      state.parser.reset(state.limits.max_head_bytes, expected_body);
      continue;
    }
    const bool nothing_before = !state.received;
    const error_code error = co_await state.fill();
    if (error) co_return state.fail(state.read_failure(error));
    if (nothing_before) state.deadline.arm(state.deadlines.idle);
  }
  state.deadline.disarm();
  state.answered = true;
  co_return ResponseHead{state.parser.status(), std::move(state.parser.headers())};
}

asio::awaitable<Attempt<std::string_view>> Client::read_some() {
  State& state = *state_;
  for (;;) {
    auto piece = state.take_body();
    if (!piece || !piece->empty() || state.parser.done()) co_return piece;
    state.deadline.arm(state.deadlines.idle);
    const error_code error = co_await state.fill();
    state.deadline.disarm();
    if (!error) continue;
    // A close ends a body without a length; over TLS only when the peer said so.
    if (error != asio::error::eof) co_return state.fail(state.read_failure(error));
    state.broken = true;
    if (const auto end = state.parser.end(); !end) co_return state.fail(FailureKind::truncated);
  }
}

asio::awaitable<Attempt<std::string>> Client::read_all(std::size_t limit) {
  std::string all;
  for (;;) {
    auto piece = co_await read_some();
    if (!piece) co_return std::unexpected(std::move(piece.error()));
    if (piece->empty()) co_return all;
    if (all.size() + piece->size() > limit) co_return state_->fail(FailureKind::garbage);
    all.append(*piece);
  }
}

bool Client::reusable() const {
  const State& state = *state_;
  return state.answered && !state.broken && state.parser.done() && state.parser.keep_alive() &&
         state.begin == state.filled;
}

bool Client::stale() {
  Stream& stream = state_->stream;
  if (state_->broken || !stream.socket().is_open()) return true;
  char byte = 0;
  const auto size = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
  return size == 0 || stream.tls() == nullptr;  // over TLS the bytes may be a session ticket
}

bool Client::nothing_received() const { return !state_->received; }
std::uint64_t Client::requests_sent() const { return state_->requests; }
Stream& Client::stream() { return state_->stream; }

}  // namespace molly::http
