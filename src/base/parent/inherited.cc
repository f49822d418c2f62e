#include <charconv>

#include "base/parent/parent.h"

namespace molly::base {
namespace {

std::optional<int> number_of(std::string_view text) {
  int value = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string_view take_part(std::string_view& text) {
  const std::size_t end = std::min(text.find(';'), text.size());
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

Result<Inherited> parse_inherited(std::string_view value) {
  const auto refused = failure(ErrorCode::invalid_request, "--inherited is for the parent process only", "inherited");
  Inherited inherited;
  const auto socket = number_of(take_part(value));
  if (!socket) return refused;
  inherited.parent_socket = *socket;
  while (!value.empty()) {
    const auto part = take_part(value);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return refused;
    const auto descriptor = number_of(part.substr(0, equals));
    if (!descriptor) return refused;
    inherited.listeners.push_back({std::string(part.substr(equals + 1)), *descriptor});
  }
  return inherited;
}

}  // namespace molly::base
