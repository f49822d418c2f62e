#include "http/message_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace molly::http {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::field;

namespace {

constexpr std::size_t kept_body_bytes = 64 << 10;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

// Beast's parser of messages with the callbacks that only one direction needs left empty.
template <bool is_request>
class Parser : public beast::http::basic_parser<is_request> {
 public:
  HeaderList* headers = nullptr;
  std::string_view piece;  // of a response's body, from the last put()

 protected:
  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int, error_code&) override {}
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_field_impl(field, beast::string_view name, beast::string_view value, error_code&) override {
    headers->add(view(name), view(value));
  }
  // Trailers are neither kept nor acted upon.
  void on_trailer_field_impl(field, beast::string_view, beast::string_view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, error_code&) override {
    piece = view(body);
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, error_code&) override {
    piece = view(body);
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
};

class BeastRequestParser final : public Parser<true> {
 public:
  BeastRequestParser(RequestHead& head, std::string& body) : head_(head), body_(body) { headers = &head.headers; }
  unsigned hosts = 0;
  bool strange_expectation = false;

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code&) override {
    head_.method = view(method);
    head_.target = view(target);
    head_.http_1_0 = version == 10;
  }
  void on_field_impl(field name, beast::string_view text, beast::string_view value, error_code&) override {
    headers->add(view(text), view(value));
    if (name == field::host) ++hosts;
    if (name == field::expect) {
      head_.expects_continue = equal_names(view(value), "100-continue");
      strange_expectation = !head_.expects_continue;
    }
  }
  std::size_t on_body_impl(beast::string_view bytes, error_code&) override { return keep(bytes); }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, error_code&) override { return keep(bytes); }
  std::size_t keep(beast::string_view bytes) {
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  RequestHead& head_;
  std::string& body_;
};

Problem problem_of(const error_code& error) {
  namespace http = beast::http;
  if (error == http::error::header_limit) return {431, "the request's head is too large"};
  if (error == http::error::body_limit) return {413, "the request's body is too large"};
  if (error == http::error::bad_version) return {505, "the HTTP version is not supported: use HTTP/1.1"};
  if (error == http::error::bad_content_length || error == http::error::multiple_content_length ||
      error == http::error::bad_transfer_encoding) {
    return {400, "Content-Length or Transfer-Encoding is not valid"};
  }
  if (error == http::error::bad_chunk || error == http::error::bad_chunk_extension) {
    return {400, "the chunked body is not valid"};
  }
  return {400, "the request is not valid HTTP"};
}

}  // namespace

struct RequestParser::Inner {
  RequestHead head;
  std::string body;
  std::optional<BeastRequestParser> parser;
  bool checked = false;

  std::optional<Problem> check_head() {
    checked = true;
    head.keep_alive = parser->keep_alive();
    if (parser->hosts > 1 || (parser->hosts == 0 && !head.http_1_0)) return Problem{400, "one Host header is needed"};
    if (parser->strange_expectation) return Problem{417, "Expect may only be 100-continue"};
    return std::nullopt;
  }
};

RequestParser::RequestParser() : inner_(std::make_unique<Inner>()) {}
RequestParser::~RequestParser() = default;

void RequestParser::reset(std::size_t max_header_bytes, std::size_t max_body_bytes) {
  Inner& inner = *inner_;
  inner.head.method.clear();
  inner.head.target.clear();
  inner.head.headers.clear();
  inner.head.expects_continue = false;
  if (inner.body.capacity() > kept_body_bytes) inner.body = std::string();
  inner.body.clear();
  inner.checked = false;
  inner.parser.emplace(inner.head, inner.body);
  inner.parser->header_limit(static_cast<std::uint32_t>(max_header_bytes));
  inner.parser->body_limit(max_body_bytes);
  inner.parser->eager(true);
}

std::expected<std::size_t, Problem> RequestParser::feed(std::string_view bytes) {
  Inner& inner = *inner_;
  error_code error;
  const std::size_t taken = inner.parser->put({bytes.data(), bytes.size()}, error);
  if (error && error != beast::http::error::need_more) return std::unexpected(problem_of(error));
  if (!inner.checked && inner.parser->is_header_done()) {
    if (const auto problem = inner.check_head()) return std::unexpected(*problem);
  }
  return taken;
}

bool RequestParser::begun() const { return inner_->parser->got_some(); }
bool RequestParser::head_done() const { return inner_->parser->is_header_done(); }
bool RequestParser::done() const { return inner_->parser->is_done(); }
const RequestHead& RequestParser::head() const { return inner_->head; }
const std::string& RequestParser::body() const { return inner_->body; }

namespace {

class BeastResponseParser final : public Parser<false> {
 public:
  unsigned status = 0;

 private:
  void on_response_impl(int code, beast::string_view, int, error_code&) override {
    status = static_cast<unsigned>(code);
  }
};

}  // namespace

struct ResponseParser::Inner {
  HeaderList headers;
  std::optional<BeastResponseParser> parser;
};

ResponseParser::ResponseParser() : inner_(std::make_unique<Inner>()) {}
ResponseParser::~ResponseParser() = default;

void ResponseParser::reset(std::size_t max_head_bytes, Body body) {
  inner_->headers.clear();
  BeastResponseParser& parser = inner_->parser.emplace();
  parser.headers = &inner_->headers;
  parser.header_limit(static_cast<std::uint32_t>(max_head_bytes));
  parser.body_limit(boost::none);
  parser.skip(body == Body::none);
}

std::expected<ResponseParser::Taken, ResponseParser::Problem> ResponseParser::feed(std::string_view bytes) {
  BeastResponseParser& parser = *inner_->parser;
  parser.piece = {};
  error_code error;
  const std::size_t size = parser.put({bytes.data(), bytes.size()}, error);
  if (error == beast::http::error::header_limit) return std::unexpected(Problem::head_too_large);
  if (error && error != beast::http::error::need_more) return std::unexpected(Problem::garbage);
  return Taken{size, parser.piece};
}

std::expected<void, ResponseParser::Problem> ResponseParser::end() {
  BeastResponseParser& parser = *inner_->parser;
  if (parser.is_done()) return {};
  if (!parser.got_some()) return std::unexpected(Problem::truncated);
  error_code error;
  parser.put_eof(error);
  if (error) return std::unexpected(Problem::truncated);
  return {};
}

bool ResponseParser::head_done() const { return inner_->parser->is_header_done(); }
bool ResponseParser::done() const { return inner_->parser->is_done(); }
bool ResponseParser::keep_alive() const { return inner_->parser->keep_alive(); }
unsigned ResponseParser::status() const { return inner_->parser->status; }
HeaderList& ResponseParser::headers() { return inner_->headers; }

}  // namespace molly::http
