#include "engine/service/text_stream.h"

#include <algorithm>

namespace molly::engine {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

// Bytes that a character with this first byte has; 0: no character begins so.
std::size_t character_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// How many bytes at the end are the beginning of a character that is not whole yet.
std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (continues(byte)) continue;
    return character_bytes(byte) > back ? back : 0;
  }
  return 0;
}

// The longest end of `text` that `stop` begins with, but for the whole of it.
std::size_t possible_beginning(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

std::string as_utf8(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = character_bytes(static_cast<unsigned char>(bytes[0]));
    const bool whole = length > 0 && length <= bytes.size() &&
                       std::ranges::all_of(bytes.substr(1, length - 1),
                                           [](char byte) { return continues(static_cast<unsigned char>(byte)); });
    out += whole ? bytes.substr(0, length) : replacement;
    bytes.remove_prefix(whole ? length : 1);
  }
  return out;
}

}  // namespace

std::string TextStream::release(std::size_t bytes) {
  std::string out = as_utf8(std::string_view(held_).substr(0, bytes));
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
  while (keep < held_.size() && continues(static_cast<unsigned char>(held_[held_.size() - keep]))) ++keep;
  return release(held_.size() - keep);
}

std::string TextStream::finish() { return release(held_.size()); }

}  // namespace molly::engine
