#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace molly::base {

// Appends JSON to one string: no tree, no reflection, commas and escapes done. For the documents that
// Molly itself makes; what clients send is the business of wire.
//
//   JsonWriter json;
//   json.begin_object().member("name", name).key("tiers").begin_array().value("T0").end_array().end_object();
//   return std::move(json).text();
//
// Bytes that are not UTF-8 become U+FFFD, and numbers that JSON has no form for become null, so the text
// is always valid. Nesting is bounded at 64. Not for use from two threads at once.
class JsonWriter {
 public:
  JsonWriter() = default;
  // Appends behind `beginning`, whose capacity is reused.
  explicit JsonWriter(std::string beginning) : text_(std::move(beginning)) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);
  template <std::same_as<bool> Boolean>
  JsonWriter& value(Boolean truth) {
    return raw(truth ? "true" : "false");
  }
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  JsonWriter& value(Integer number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return raw(std::string_view(digits, static_cast<std::size_t>(end - digits)));
  }
  JsonWriter& null() { return raw("null"); }
  // A value that is JSON already; it is not checked.
  JsonWriter& raw(std::string_view json);

  template <class Value>
  JsonWriter& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  JsonWriter& raw_member(std::string_view name, std::string_view json) { return key(name).raw(json); }

  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string text_;
  std::uint64_t filled_ = 0;  // bit n: the container at depth n has a member already
  unsigned depth_ = 0;
  bool after_key_ = false;
};

// `text` as a JSON string, quotes included.
std::string json_string(std::string_view text);

}  // namespace molly::base
