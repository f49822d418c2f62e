#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// The fixed protocol between the parent and a control plane: one message is one packet of at most
// base::max_packet_bytes, every field little-endian and always present, so that neither side has much to parse.
//   kind u8 | sequence u32 | id u64 | number i32 | arguments list | environment list | text string | blob string
//   string: length u32, bytes; list: count u32, strings
namespace molly::base {

enum class MessageKind : std::uint8_t {
  // control plane to parent; every one with a sequence is answered under it
  spawn = 1,    // arguments, environment, text: path of the log, blob -> spawned or failed
  signal = 2,   // id, number: the signal -> done or failed
  list = 3,     // -> child for each child, then list_end
  listen = 4,   // text: address -> listening with the descriptor, or failed
  ready = 5,    // no answer
  replace = 6,  // no answer
  // parent to control plane
  spawned = 64,    // id, number: process id
  done = 65,       //
  child = 66,      // id, number: process id, blob
  list_end = 67,   // number: 1 when an older control plane still drains
  listening = 68,  // the packet carries a descriptor
  failed = 69,     // text: why; number: 1 when this control plane is not (or no longer) in charge
  exited = 70,     // id, number: wait status; sequence 0
};

struct Message {
  MessageKind kind = MessageKind::done;
  std::uint32_t sequence = 0;
  std::uint64_t id = 0;
  std::int32_t number = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string text;
  std::string blob;
  bool operator==(const Message&) const = default;
};

inline constexpr std::size_t max_blob_bytes = 4096;

std::vector<std::uint8_t> encode(const Message& message);

// Nothing when the bytes are not exactly one message.
std::optional<Message> decode(std::span<const std::uint8_t> bytes);

}  // namespace molly::base
