// A stream gives the same events however it is cut: whole, and in chunks whose size the first byte names.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wire/sse.h"

namespace {

std::string events_of(std::string_view stream, std::size_t chunk_size) {
  molly::wire::SseParser parser(256);
  std::string all;
  for (; !stream.empty(); stream.remove_prefix(std::min(chunk_size, stream.size()))) {
    const std::string chunk(stream.substr(0, chunk_size));
    parser.feed(chunk);
    while (true) {
      const auto event = parser.next();
      if (!event) return all + "!";
      if (!*event) break;
      all.append((*event)->name).append("|").append((*event)->data).append(";");
    }
  }
  return all + (parser.between_events() ? "." : "~");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  if (events_of(stream, stream.size() + 1) != events_of(stream, 1 + data[0] % 16)) std::abort();
  return 0;
}
