#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/header.h"

namespace molly::http {

// What the server answers by itself to bytes that are no request.
struct Problem {
  unsigned status;
  std::string_view message;
};

struct RequestHead {
  std::string method;
  std::string target;
  HeaderList headers;
  bool http_1_0 = false;
  bool keep_alive = false;
  bool expects_continue = false;
};

// Bytes to one request after the other; copies what it keeps, so that the input buffer can be reused at
// once. Strict about what delimits messages (RFC 9112): both Content-Length and Transfer-Encoding, several
// lengths, other codings than chunked, bare line feeds and a missing or repeated Host are problems.
class RequestParser {
 public:
  RequestParser();
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Ready for the next request; memory of a large body is given back.
  void reset(std::size_t max_header_bytes, std::size_t max_body_bytes);
  // Takes bytes from the front and says how many; stops behind the request's end.
  std::expected<std::size_t, Problem> feed(std::string_view bytes);

  bool begun() const;
  bool head_done() const;
  bool done() const;
  const RequestHead& head() const;
  const std::string& body() const;

 private:
  struct Inner;
  std::unique_ptr<Inner> inner_;
};

// Bytes of one response to its head and pieces of its body.
class ResponseParser {
 public:
  enum class Problem : std::uint8_t { garbage, head_too_large, truncated };
  enum class Body : std::uint8_t { as_announced, none };

  ResponseParser();
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  void reset(std::size_t max_head_bytes, Body body);
  struct Taken {
    std::size_t size = 0;   // of the bytes given
    std::string_view body;  // a piece of the body inside them
  };
  // One step: the head, the frame of a chunk, or one piece of the body.
  std::expected<Taken, Problem> feed(std::string_view bytes);
  // The peer closed: fine only where that is how the body ends.
  std::expected<void, Problem> end();

  bool head_done() const;
  bool done() const;
  bool keep_alive() const;
  unsigned status() const;
  HeaderList& headers();

 private:
  struct Inner;
  std::unique_ptr<Inner> inner_;
};

}  // namespace molly::http
