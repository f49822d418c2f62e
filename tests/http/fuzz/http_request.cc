// Any bytes, however they are cut, give the same requests or the same problem as in one piece.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "http/message_parser.h"

namespace {

using namespace molly::http;

std::string parse(std::string_view bytes, std::size_t step) {
  std::string seen;
  RequestParser parser;
  parser.reset(8'192, 10'000);
  std::string buffer;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    buffer.append(bytes.substr(at, step));
    while (!buffer.empty()) {
      const auto taken = parser.feed(buffer);
      if (!taken) return seen + "problem " + std::to_string(taken.error().status);
      if (*taken > buffer.size()) std::abort();
      buffer.erase(0, *taken);
      if (!parser.done()) break;
      if (parser.body().size() > 10'000) std::abort();
      seen.append(parser.head().method).append(" ").append(parser.head().target).append(" ").append(parser.body());
      for (const Header header : parser.head().headers) seen.append(header.name).append("=").append(header.value);
      seen.append(parser.head().keep_alive ? " keep\n" : " close\n");
      parser.reset(8'192, 10'000);
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // The limits are the same in both, but a cut may show the problem before or after a limit is passed.
  const std::string whole = parse(bytes, std::max<std::size_t>(size, 1));
  const std::string cut = parse(bytes, 7);
  if (whole.find("problem") == std::string::npos && whole != cut) std::abort();
  return 0;
}
