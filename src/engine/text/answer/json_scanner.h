#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace molly::engine {

// Follows one JSON object (RFC 8259) that comes in pieces, to its end or to where it is broken.
class JsonScanner {
 public:
  enum class State : std::uint8_t { open, complete, broken };

  // How many of these bytes belong to the object; all of them while it is open.
  std::size_t append(std::string_view bytes);
  State state() const { return state_; }

 private:
  enum class Wanted : std::uint8_t { object, value, value_or_end, key, key_or_end, colon, comma_or_end };
  enum class Within : std::uint8_t { structure, string, escape, hex, scalar };

  bool take(char c);
  bool take_structure(char c);
  bool take_string(char c);
  bool take_escape(char c);
  bool take_hex(char c);
  bool take_scalar(char c);
  bool begin_value(char c);
  bool open(char bracket);
  bool close(char bracket);
  void end_value();

  State state_ = State::open;
  Wanted wanted_ = Wanted::object;
  Within within_ = Within::structure;
  std::string brackets_;  // those that are open
  std::string scalar_;    // a number, true, false or null so far
  bool is_key_ = false;   // the string is
  int hex_left_ = 0;
};

}  // namespace molly::engine
