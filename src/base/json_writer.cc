#include "base/json_writer.h"

#include <cmath>

namespace molly::base {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Length of the well-formed UTF-8 sequence at the start of `bytes`, 0 where there is none.
std::size_t sequence_length(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  std::size_t length = 0;
  unsigned char least = 0x80;  // range of the second byte: excludes overlong forms and surrogates
  unsigned char most = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) least = 0xA0;
    if (lead == 0xED) most = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) least = 0x90;
    if (lead == 0xF4) most = 0x8F;
  }
  if (length == 0 || bytes.size() < length || at(1) < least || at(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

void append_control(std::string& out, unsigned char c) {
  static constexpr std::string_view digits = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  out += "\\u00";
  out.push_back(digits[c >> 4]);
  out.push_back(digits[c & 15]);
}

void append_string(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t plain = 0;  // start of the run that needs no change
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != 0x7F) {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      if (const std::size_t length = sequence_length(text.substr(i)); length != 0) {
        i += length;
        continue;
      }
    }
    out += text.substr(plain, i - plain);
    if (c >= 0x80) {
      out += replacement;
    } else {
      append_control(out, c);
    }
    plain = ++i;
  }
  out += text.substr(plain);
  out.push_back('"');
}

}  // namespace

void JsonWriter::separate() {
  if (std::exchange(after_key_, false)) return;
  const std::uint64_t bit = std::uint64_t{1} << depth_;
  if ((filled_ & bit) != 0) text_.push_back(',');
  // Values beside each other at depth 0 are separate documents: they get no comma.
  if (depth_ > 0) filled_ |= bit;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_.push_back(bracket);
  if (depth_ < 63) ++depth_;
  filled_ &= ~(std::uint64_t{1} << depth_);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_.push_back(bracket);
  if (depth_ > 0) --depth_;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_string(text_, name);
  text_.push_back(':');
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_string(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return raw(std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_string(out, text);
  return out;
}

}  // namespace molly::base
