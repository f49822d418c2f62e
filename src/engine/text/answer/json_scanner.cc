#include "engine/text/answer/json_scanner.h"

#include "engine/text/partial_text.h"
#include "wire/json_reader.h"

namespace molly::engine {
namespace {

constexpr std::size_t longest_scalar = 400;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool is_scalar_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || std::string_view("+-.E").contains(c);
}

bool is_scalar(const std::string& text) {
  wire::JsonReader in(text);
  in.skip();
  in.expect_end();
  return in.ok();
}

}  // namespace

std::size_t JsonScanner::append(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (state_ != State::open) return at;
    if (!take(bytes[at])) {
      state_ = State::broken;
      return at;
    }
  }
  return bytes.size();
}

bool JsonScanner::take(char c) {
  switch (within_) {
    case Within::structure: return take_structure(c);
    case Within::string: return take_string(c);
    case Within::escape: return take_escape(c);
    case Within::hex: return take_hex(c);
    case Within::scalar: break;
  }
  return take_scalar(c);
}

bool JsonScanner::take_structure(char c) {
  if (white_space.contains(c)) return wanted_ != Wanted::object;
  switch (wanted_) {
    case Wanted::object: return c == '{' && open(c);
    case Wanted::value_or_end:
      if (c == ']') return close(c);
      return begin_value(c);
    case Wanted::value: return begin_value(c);
    case Wanted::key_or_end:
      if (c == '}') return close(c);
      [[fallthrough]];
    case Wanted::key:
      within_ = Within::string;
      is_key_ = true;
      return c == '"';
    case Wanted::colon: wanted_ = Wanted::value; return c == ':';
    case Wanted::comma_or_end: break;
  }
  if (c != ',') return close(c);
  wanted_ = brackets_.back() == '{' ? Wanted::key : Wanted::value;
  return true;
}

bool JsonScanner::begin_value(char c) {
  if (c == '{' || c == '[') return open(c);
  if (c == '"') {
    within_ = Within::string;
    is_key_ = false;
    return true;
  }
  within_ = Within::scalar;
  scalar_ = c;
  return is_scalar_character(c);
}

bool JsonScanner::open(char bracket) {
  wanted_ = bracket == '{' ? Wanted::key_or_end : Wanted::value_or_end;
  brackets_ += bracket;
  return brackets_.size() <= wire::JsonReader::max_depth;
}

bool JsonScanner::close(char bracket) {
  if (bracket != (brackets_.back() == '{' ? '}' : ']')) return false;
  brackets_.pop_back();
  end_value();
  return true;
}

void JsonScanner::end_value() {
  within_ = Within::structure;
  wanted_ = Wanted::comma_or_end;
  if (brackets_.empty()) state_ = State::complete;
}

bool JsonScanner::take_string(char c) {
  if (c == '\\') {
    within_ = Within::escape;
  } else if (c == '"') {
    end_value();
    if (is_key_) wanted_ = Wanted::colon;
  }
  return static_cast<unsigned char>(c) >= 0x20;
}

bool JsonScanner::take_escape(char c) {
  within_ = c == 'u' ? Within::hex : Within::string;
  hex_left_ = 4;
  return std::string_view("\"\\/bfnrtu").contains(c);
}

bool JsonScanner::take_hex(char c) {
  if (--hex_left_ == 0) within_ = Within::string;
  return is_hex(c);
}

bool JsonScanner::take_scalar(char c) {
  if (is_scalar_character(c)) {
    scalar_ += c;
    return scalar_.size() <= longest_scalar;
  }
  if (!is_scalar(scalar_)) return false;
  end_value();
  return take_structure(c);
}

}  // namespace molly::engine
