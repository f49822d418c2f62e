#include "http/connection.h"

namespace molly::http {

namespace asio = boost::asio;

namespace {

// The part of a target behind scheme and authority: "http://host/a?b" is "/a?b".
std::string_view origin_form(std::string_view target) {
  if (target.empty() || target.front() == '/') return target;
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos) return target;
  const std::size_t path = target.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
}

}  // namespace

std::string_view Exchange::method() const { return connection_.head().method; }
std::string_view Exchange::target() const { return connection_.head().target; }

std::string_view Exchange::path() const {
  const std::string_view target = origin_form(connection_.head().target);
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  return path.empty() ? "/" : path;
}

std::string_view Exchange::query() const {
  const std::string_view target = origin_form(connection_.head().target);
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return {};
  const std::string_view query = target.substr(mark + 1);
  return query.substr(0, query.find('#'));
}

const HeaderList& Exchange::headers() const { return connection_.head().headers; }
std::string_view Exchange::body() const { return connection_.body(); }
const Peer& Exchange::peer() const { return connection_.peer(); }
bool Exchange::client_gone() const { return connection_.client_gone(); }
bool Exchange::draining() const { return connection_.draining(); }

asio::awaitable<Result<void>> Exchange::respond(unsigned status, std::span<const Header> headers,
                                                std::string_view body) {
  return connection_.respond(status, headers, body);
}

Result<void> Exchange::start_stream(unsigned status, std::span<const Header> headers) {
  return connection_.start_stream(status, headers);
}

asio::awaitable<Result<void>> Exchange::flush() { return connection_.write({}); }
asio::awaitable<Result<void>> Exchange::write(std::string_view bytes) { return connection_.write(bytes); }
asio::awaitable<Result<void>> Exchange::finish(std::string_view last) { return connection_.finish(last); }
bool Exchange::started() const { return connection_.started(); }
bool Exchange::finished() const { return connection_.finished(); }

}  // namespace molly::http
