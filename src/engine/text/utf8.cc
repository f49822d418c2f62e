#include "engine/text/utf8.h"

namespace molly::engine {
namespace {

struct Lead {
  std::size_t length;
  char32_t bits;
  char32_t least;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte >= 0xc2 && byte < 0xe0) return {2, byte & 0x1fU, 0x80};
  if (byte >= 0xe0 && byte < 0xf0) return {3, byte & 0x0fU, 0x800};
  if (byte >= 0xf0 && byte < 0xf5) return {4, byte & 0x07U, 0x10000};
  return {0, 0, 0};
}

bool is_scalar(char32_t value) { return value < 0xd800 || (value > 0xdfff && value <= 0x10ffff); }

}  // namespace

std::size_t character_bytes(char first) { return lead_of(static_cast<unsigned char>(first)).length; }

CodePoint first_code_point(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text.front()));
  if (lead.length == 0 || lead.length > text.size()) return {};
  char32_t value = lead.bits;
  for (const char c : text.substr(1, lead.length - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80) return {};
    value = (value << 6) | (byte & 0x3fU);
  }
  if (value < lead.least || !is_scalar(value)) return {};
  return {value, lead.length};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = first_code_point(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string repaired_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = first_code_point(text).length;
    repaired += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return repaired;
}

void append_code_point(std::string& text, char32_t value) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xc0 | (value >> 6));
  } else {
    if (value < 0x10000) {
      put(0xe0 | (value >> 12));
    } else {
      put(0xf0 | (value >> 18));
      put(0x80 | ((value >> 12) & 0x3f));
    }
    put(0x80 | ((value >> 6) & 0x3f));
  }
  put(0x80 | (value & 0x3f));
}

}  // namespace molly::engine
