#include "engine/service/text_stream.h"

#include <algorithm>

#include "engine/text/partial_text.h"
#include "engine/text/utf8.h"

namespace molly::engine {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80; }

// How many bytes at the end are the beginning of a character that is not whole yet.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const char byte = text[text.size() - back];
    if (continues(byte)) continue;
    return character_bytes(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string TextStream::release(std::size_t bytes) {
  std::string out = repaired_utf8(std::string_view(held_).substr(0, bytes));
  held_.erase(0, bytes);
  return out;
}

std::string TextStream::append(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t first_stop = std::string::npos;
  for (const std::string& stop : stops_) {
    if (!stop.empty()) first_stop = std::min(first_stop, held_.find(stop));
  }
  if (first_stop != std::string::npos) {
    stopped_ = true;
    held_.resize(first_stop);
    return release(held_.size());
  }
  std::size_t keep = unfinished_bytes(held_);
  for (const std::string& stop : stops_) {
    if (!stop.empty()) keep = std::max(keep, possible_beginning(held_, stop));
  }
  // A stop string may begin inside the unfinished character's neighbourhood: never cut a character in two.
  while (keep < held_.size() && continues(held_[held_.size() - keep])) ++keep;
  return release(held_.size() - keep);
}

std::string TextStream::finish() { return release(held_.size()); }

}  // namespace molly::engine
