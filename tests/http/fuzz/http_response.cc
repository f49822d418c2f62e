// Any bytes give a response's head and pieces of its body that lie inside the bytes, or a problem.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "http/message_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::http;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ResponseParser parser;
  parser.reset(8'192, ResponseParser::Body::as_announced);
  while (!bytes.empty() && !parser.done()) {
    const auto taken = parser.feed(bytes);
    if (!taken) return 0;
    if (taken->size > bytes.size()) std::abort();
    if (!taken->body.empty() &&
        (taken->body.data() < bytes.data() || taken->body.data() + taken->body.size() > bytes.data() + bytes.size())) {
      std::abort();
    }
    if (taken->size == 0) break;
    bytes.remove_prefix(taken->size);
  }
  (void)parser.end();
  return 0;
}
