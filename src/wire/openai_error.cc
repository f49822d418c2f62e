#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "wire/json_write.h"
#include "wire/openai.h"
#include "wire/openai_upstream_error.h"

// Errors, both ways.
namespace molly::wire {
namespace {

struct Shape {
  ErrorCode error;
  int status;
  std::string_view type;
  std::string_view code;  // empty: null
};

// Types are those that OpenAI's own service and documentation use; codes are its codes where it has one for the case.
constexpr std::array<Shape, 19> shapes{{
    {ErrorCode::invalid_request, 400, "invalid_request_error", ""},
    {ErrorCode::unsupported_parameter, 400, "invalid_request_error", "unsupported_parameter"},
    {ErrorCode::context_length_exceeded, 400, "invalid_request_error", "context_length_exceeded"},
    {ErrorCode::unauthenticated, 401, "authentication_error", "invalid_api_key"},
    {ErrorCode::forbidden, 403, "permission_error", "policy_refused"},
    {ErrorCode::not_found, 404, "not_found_error", "not_found"},
    {ErrorCode::method_not_allowed, 405, "invalid_request_error", "method_not_allowed"},
    {ErrorCode::timeout, 504, "timeout_error", "timeout"},
    {ErrorCode::conflict, 409, "conflict_error", "conflict"},
    {ErrorCode::payload_too_large, 413, "invalid_request_error", "payload_too_large"},
    {ErrorCode::header_too_large, 431, "invalid_request_error", "header_too_large"},
    {ErrorCode::rate_limited, 429, "rate_limit_error", "rate_limit_exceeded"},
    {ErrorCode::overloaded, 503, "overloaded_error", "overloaded"},
    {ErrorCode::unavailable, 503, "server_error", "no_target_available"},
    {ErrorCode::upstream_failed, 502, "server_error", "upstream_failed"},
    {ErrorCode::cancelled, 499, "invalid_request_error", "cancelled"},
    {ErrorCode::config_invalid, 500, "server_error", "internal_error"},
    {ErrorCode::io_failed, 500, "server_error", "internal_error"},
    {ErrorCode::internal, 500, "server_error", "internal_error"},
}};

const Shape& shape_of(ErrorCode code) {
  const auto* const found = std::ranges::find(shapes, code, &Shape::error);
  return found != shapes.end() ? *found : shapes.back();
}

constexpr std::size_t most_quoted = 300;  // characters

// At most 300 characters of one line.
std::string excerpt(std::string_view text) {
  std::string out;
  std::size_t characters = 0;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    if (!continues && ++characters > most_quoted) return out + "...";
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out;
}

bool says_context(const UpstreamError& error) {
  return error.code == "context_length_exceeded" || error.type == "exceed_context_size_error" ||
         error.type == "context_length_exceeded";
}

ErrorCode code_of_status(int status) {
  switch (status) {
    case 400:
    case 422: return ErrorCode::invalid_request;
    case 408:
    case 504: return ErrorCode::timeout;
    case 413: return ErrorCode::payload_too_large;
    case 429: return ErrorCode::rate_limited;
    case 503: return ErrorCode::unavailable;
    case 529: return ErrorCode::overloaded;
    default: return ErrorCode::upstream_failed;  // 401, 403, 404 too: our key or our model name is at fault
  }
}

ErrorCode code_of(const UpstreamError& error, int status) {
  if (says_context(error)) return ErrorCode::context_length_exceeded;
  if (error.code == "unsupported_parameter") return ErrorCode::unsupported_parameter;
  if (status != 0) return code_of_status(status);
  if (error.code == "rate_limit_exceeded" || error.type == "rate_limit_error") return ErrorCode::rate_limited;
  if (error.type == "overloaded_error") return ErrorCode::overloaded;
  return ErrorCode::upstream_failed;
}

// The header's seconds, at most a day; dates are not understood here.
std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text) {
  constexpr double most_seconds = 86400;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (text.empty() || !whole || !(seconds >= 0)) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, most_seconds) * 1000));
}

// An HTTP status where the dialect has a word; 0 for any other value.
int status_of(std::string_view json) {
  int status = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), status);
  return error == std::errc() && end == json.data() + json.size() && status >= 400 && status <= 599 ? status : 0;
}

constexpr std::array<Member<UpstreamError>, 4> error_members{{
    {"message", Rule::null_is_none, [](JsonReader& in, UpstreamError& error) { error.message = in.string(); }},
    {"type", Rule::null_is_none, [](JsonReader& in, UpstreamError& error) { error.type = in.string(); }},
    {"code", Rule::null_is_none,
     [](JsonReader& in, UpstreamError& error) {
       if (in.peek() == JsonReader::Kind::string) {
         error.code = in.string();
       } else {
         error.status = status_of(in.raw());
       }
     }},
    {"param", Rule::null_is_none,
     [](JsonReader& in, UpstreamError& error) {
       const bool is_string = in.peek() == JsonReader::Kind::string;
       error.param = is_string ? in.string() : std::string(in.raw());
     }},
}};

// A sentence without any framing, as some servers send it; not an HTML page, and nothing binary.
std::string plain_sentence(std::string_view body) {
  const auto printable = [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; };
  const bool is_text = !body.empty() && std::isalpha(static_cast<unsigned char>(body.front())) != 0;
  return is_text && std::ranges::all_of(body, printable) ? std::string(body) : std::string();
}

// {"error":{...}}, {"error":"..."}, {"message":"..."} and {"detail":"..."} are all in use.
UpstreamError read_error_body(std::string_view body) {
  UpstreamError error;
  error.message = plain_sentence(body);
  if (!error.message.empty()) return error;
  JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key == "error") {
      error = read_upstream_error(in);
    } else if ((key == "message" || key == "detail") && in.peek() == JsonReader::Kind::string) {
      error.message = in.string();
    } else {
      in.skip();
    }
  });
  in.expect_end();
  return in.ok() ? error : UpstreamError{};
}

}  // namespace

UpstreamError read_upstream_error(JsonReader& in) {
  UpstreamError error;
  if (in.peek() == JsonReader::Kind::string) {
    error.message = in.string();
  } else {
    ExtraFields unknown;
    read_object(in, error_members, error, unknown);
  }
  return error;
}

Error to_error(const UpstreamError& upstream, int http_status) {
  Error error;
  error.code = code_of(upstream, http_status != 0 ? http_status : upstream.status);
  error.message = http_status != 0 ? "the target answered with status " + std::to_string(http_status)
                                   : std::string("the target reported an error");
  if (!upstream.message.empty()) error.message += ": " + excerpt(upstream.message);
  const bool of_request = http_status == 400 || http_status == 422;
  if (of_request) error.field = excerpt(upstream.param);
  return error;
}

Error parse_error_answer(int http_status, std::string_view body, std::string_view retry_after) {
  Error error = to_error(read_error_body(body), http_status);
  if (error.code == ErrorCode::rate_limited || error.code == ErrorCode::unavailable ||
      error.code == ErrorCode::overloaded) {
    error.retry_after = parse_retry_after(retry_after);
  }
  return error;
}

int http_status(ErrorCode code) { return shape_of(code).status; }

std::string render_error(const Error& error, std::string_view type_override) {
  const Shape& shape = shape_of(error.code);
  base::JsonWriter out;
  out.begin_object().key("error").begin_object().member("message", error.message);
  out.member("type", type_override.empty() ? shape.type : type_override);
  out.key("param");
  error.field.empty() ? out.null() : out.value(error.field);
  out.key("code");
  // OpenAI's own code for a name that is no model: SDKs and people look for it.
  const bool no_such_model = error.code == ErrorCode::not_found && error.field == "model";
  const std::string_view code = no_such_model ? std::string_view("model_not_found") : shape.code;
  code.empty() ? out.null() : out.value(code);
  out.end_object().end_object();
  return std::move(out).text();
}

}  // namespace molly::wire
