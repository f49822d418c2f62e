#include "wire/json_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <system_error>

namespace molly::wire {
namespace {

constexpr std::uint32_t not_hex = 0xffffffff;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

// Bytes of a string that need no look: printable ASCII other than '"' and '\'. Eight at a time.
const char* pass_plain(const char* at, const char* end) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t high = 0x8080808080808080;
  while (end - at >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    const std::uint64_t quote = word ^ (ones * '"');
    const std::uint64_t slash = word ^ (ones * '\\');
    const std::uint64_t special =
        (((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word) | word) & high;
    if (special == 0) {
      at += 8;
      continue;
    }
    if constexpr (std::endian::native == std::endian::little) return at + std::countr_zero(special) / 8;
    break;
  }
  while (at < end && static_cast<unsigned char>(*at) >= 0x20 && static_cast<unsigned char>(*at) < 0x80 && *at != '"' &&
         *at != '\\') {
    ++at;
  }
  return at;
}

// Length of the well-formed UTF-8 sequence beyond ASCII that starts here (Unicode table 3-7), 0 if there is none.
std::size_t utf8_sequence(const char* at, std::size_t left) {
  const auto byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead >= 0xc2 && lead <= 0xdf) return left >= 2 && follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (left < 3 || !follows(1) || !follows(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    if (lead == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

std::uint32_t hex_value(const char* at) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(at, at + 4, value, 16);
  return error == std::errc() && end == at + 4 ? value : not_hex;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | (point >> 6));
  } else if (point < 0x10000) {
    put(0xe0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3f));
  } else {
    put(0xf0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3f));
    put(0x80 | ((point >> 6) & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

char unescape_letter(char letter) {
  switch (letter) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return letter;
  }
}

// A name in an error message: a client's own, so not at any length.
std::string_view shortened(std::string_view name) {
  std::size_t length = std::min<std::size_t>(name.size(), 64);
  while (length > 0 && length < name.size() && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;
  return name.substr(0, length);
}

}  // namespace

std::string unescape_json(std::string_view body) {
  std::string out;
  out.reserve(body.size());
  for (std::size_t i = 0; i < body.size();) {
    const std::size_t slash = body.find('\\', i);
    out.append(body.substr(i, slash - i));
    if (slash == std::string_view::npos) break;
    const char letter = body[slash + 1];
    i = slash + 2;
    if (letter != 'u') {
      out += unescape_letter(letter);
      continue;
    }
    std::uint32_t point = hex_value(body.data() + i);
    i += 4;
    if (is_high_surrogate(point)) {
      point = 0x10000 + ((point - 0xd800) << 10) + (hex_value(body.data() + i + 2) - 0xdc00);
      i += 6;
    }
    append_utf8(out, point);
  }
  return out;
}

JsonReader::Kind JsonReader::peek() {
  skip_space();
  if (at_ == end_) return Kind::none;
  switch (*at_) {
    case '{': return Kind::object;
    case '[': return Kind::array;
    case '"': return Kind::string;
    case 't':
    case 'f': return Kind::boolean;
    case 'n': return Kind::null;
    default: return is_digit(*at_) || *at_ == '-' ? Kind::number : Kind::none;
  }
}

std::string JsonReader::string() {
  if (peek() != Kind::string) {
    fail("must be a string");
    return {};
  }
  const StringToken token = string_token();
  return token.escaped ? unescape_json(token.body) : std::string(token.body);
}

bool JsonReader::boolean() {
  if (peek() != Kind::boolean) {
    fail("must be true or false");
    return false;
  }
  const bool value = *at_ == 't';
  return take_word(value ? "true" : "false") && value;
}

Number JsonReader::number() {
  if (peek() != Kind::number) {
    fail("must be a number");
    return {};
  }
  const std::string_view spelling = number_token();
  double value = 0;
  const auto result = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
  if (ok() && result.ec != std::errc()) fail("is out of range");
  return Number(value, std::string(spelling));
}

std::uint64_t JsonReader::unsigned_integer(std::uint64_t most) {
  const bool is_number = peek() == Kind::number;
  const std::string_view spelling = is_number ? number_token() : std::string_view();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
  if (error == std::errc::result_out_of_range || value > most) {
    fail("must be at most " + std::to_string(most));
    return 0;
  }
  if (!is_number || error != std::errc() || end != spelling.data() + spelling.size()) {
    fail("must be a whole number that is not negative");
    return 0;
  }
  return value;
}

std::int64_t JsonReader::integer() {
  const std::string_view spelling = peek() == Kind::number ? number_token() : std::string_view();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
  if (spelling.empty() || error != std::errc() || end != spelling.data() + spelling.size()) {
    fail("must be a whole number");
    return 0;
  }
  return value;
}

std::string_view JsonReader::raw() {
  skip_space();
  const char* const start = at_;
  pass_value();
  return ok() ? std::string_view(start, at_) : std::string_view();
}

std::optional<std::string> JsonReader::peek_string_member(std::string_view name) {
  const Mark start = mark();
  std::optional<std::string> value;
  if (!open('{', "must be an object")) return value;
  while (const std::optional<std::string_view> key = next_key()) {
    if (*key == name) {
      value = string();
      break;
    }
    skip();
  }
  rewind(start);
  return value;
}

bool JsonReader::at_empty() {
  const Kind kind = peek();
  if (kind == Kind::string) return end_ - at_ >= 2 && at_[1] == '"';
  if (kind != Kind::array && kind != Kind::object) return false;
  const char* inside = at_ + 1;
  while (inside < end_ && is_space(*inside)) ++inside;
  return inside < end_ && (*inside == ']' || *inside == '}');
}

void JsonReader::rewind(Mark mark) {
  if (failed_) return;
  at_ = mark.at;
  depth_ = mark.depth;
}

void JsonReader::fail(std::string_view what) { fail_member({}, what); }

void JsonReader::fail_member(std::string_view name, std::string_view what) {
  if (failed_) return;
  failed_ = true;
  at_ = end_;
  problem_ = what;
  for (std::size_t i = 1; i <= depth_; ++i) {
    const Level& level = levels_[i];
    if (level.is_array) {
      if (level.count > 0) path_.append("[").append(std::to_string(level.count - 1)).append("]");
      continue;
    }
    if (level.key.empty()) continue;
    if (!path_.empty()) path_ += '.';
    path_ += shortened(level.key);
  }
  if (!name.empty() && !path_.empty()) path_ += '.';
  path_ += name;
}

void JsonReader::expect_end() {
  skip_space();
  if (!failed_ && at_ != end_) syntax_error();
}

bool JsonReader::open(char bracket, std::string_view otherwise) {
  skip_space();
  if (at_ == end_ || *at_ != bracket) {
    fail(otherwise);
    return false;
  }
  if (depth_ == max_depth) {
    fail("is nested deeper than 64 levels");
    return false;
  }
  ++at_;
  Level& level = levels_[++depth_];
  level.key = {};
  level.count = 0;
  level.is_array = bracket == '[';
  return true;
}

// True when there is a further item in the innermost object or list; otherwise closes it.
bool JsonReader::next_item(char closing) {
  skip_space();
  if (failed_) return false;
  Level& level = levels_[depth_];
  if (at_ != end_ && *at_ == closing) {
    ++at_;
    close();
    return false;
  }
  if (level.count > 0) {
    if (!take(',')) return false;
    skip_space();
  }
  ++level.count;
  return true;
}

std::optional<std::string_view> JsonReader::next_key() {
  if (!next_item('}')) return std::nullopt;
  if (at_ == end_ || *at_ != '"') {
    syntax_error();
    return std::nullopt;
  }
  const StringToken token = string_token();
  skip_space();
  if (!take(':')) return std::nullopt;
  const std::string_view key =
      token.escaped ? std::string_view(decoded_keys_.emplace_front(unescape_json(token.body))) : token.body;
  levels_[depth_].key = key;
  return key;
}

std::optional<std::uint32_t> JsonReader::next_index() {
  if (!next_item(']')) return std::nullopt;
  return levels_[depth_].count - 1;
}

void JsonReader::close() { --depth_; }

void JsonReader::skip_space() {
  while (at_ < end_ && is_space(*at_)) ++at_;
}

bool JsonReader::take(char expected) {
  if (at_ != end_ && *at_ == expected) {
    ++at_;
    return true;
  }
  syntax_error();
  return false;
}

bool JsonReader::take_word(std::string_view word) {
  if (static_cast<std::size_t>(end_ - at_) >= word.size() && std::string_view(at_, word.size()) == word) {
    at_ += word.size();
    return true;
  }
  syntax_error();
  return false;
}

// Starts at the opening quote.
JsonReader::StringToken JsonReader::string_token() {
  StringToken token;
  const char* const start = ++at_;
  while (true) {
    at_ = pass_plain(at_, end_);
    if (at_ == end_) break;
    if (*at_ == '"') {
      token.body = std::string_view(start, at_++);
      return token;
    }
    if (*at_ == '\\') {
      token.escaped = true;
      if (!check_escape()) break;
    } else if (static_cast<unsigned char>(*at_) < 0x20 || !check_utf8()) {
      break;
    }
  }
  syntax_error();
  return {};
}

bool JsonReader::check_escape() {
  if (end_ - at_ < 2) return false;
  const char letter = at_[1];
  if (letter != 'u') {
    at_ += 2;
    return std::string_view("\"\\/bfnrt").contains(letter);
  }
  const std::uint32_t unit = hex4(at_);
  if (unit == not_hex) return false;
  at_ += 6;
  if (is_low_surrogate(unit)) fail("holds half of a surrogate pair");
  if (!is_high_surrogate(unit)) return ok();
  if (const std::uint32_t low = hex4(at_); low == not_hex || !is_low_surrogate(low)) {
    fail("holds half of a surrogate pair");
    return false;
  }
  at_ += 6;
  return true;
}

// The value of "\uXXXX" at this place.
std::uint32_t JsonReader::hex4(const char* at) const {
  if (end_ - at < 6 || at[0] != '\\' || at[1] != 'u') return not_hex;
  return hex_value(at + 2);
}

bool JsonReader::check_utf8() {
  const std::size_t length = utf8_sequence(at_, static_cast<std::size_t>(end_ - at_));
  if (length == 0) fail("is not valid UTF-8");
  at_ += length;
  return length > 0;
}

std::string_view JsonReader::number_token() {
  const char* const start = at_;
  const auto digits = [this] {
    const char* const first = at_;
    while (at_ < end_ && is_digit(*at_)) ++at_;
    return at_ > first;
  };
  if (*at_ == '-') ++at_;
  const bool zero = at_ < end_ && *at_ == '0';  // nothing but a fraction or an exponent may follow
  if (zero) ++at_;
  bool good = zero || digits();
  if (good && at_ < end_ && *at_ == '.') {
    ++at_;
    good = digits();
  }
  if (good && at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    good = digits();
  }
  if (good) return std::string_view(start, at_);
  syntax_error();
  return {};
}

void JsonReader::pass_value() {
  switch (peek()) {
    case Kind::object: return pass_object();
    case Kind::array: return pass_array();
    case Kind::string: string_token(); return;
    case Kind::number: number_token(); return;
    case Kind::boolean: take_word(*at_ == 't' ? "true" : "false"); return;
    case Kind::null: take_word("null"); return;
    case Kind::none: syntax_error(); return;
  }
}

void JsonReader::pass_object() {
  object([this](std::string_view) { pass_value(); });
}

void JsonReader::pass_array() {
  array([this](std::uint32_t) { pass_value(); });
}

void JsonReader::syntax_error() { fail("is not valid JSON: see byte " + std::to_string(at_ - begin_)); }

}  // namespace molly::wire
