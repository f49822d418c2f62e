#include "base/parent/protocol.h"

#include <concepts>
#include <type_traits>

namespace molly::base {
namespace {

class Writer {
 public:
  template <std::integral Number>
  void number(Number value) {
    const auto bits = static_cast<std::make_unsigned_t<Number>>(value);
    for (std::size_t i = 0; i < sizeof bits; ++i) bytes_.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
  void text(const std::string& value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void list(const std::vector<std::string>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const auto& value : values) text(value);
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads until the first field that does not fit; after that every field is empty and `good` is false.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <std::integral Number>
  Number number() {
    using Bits = std::make_unsigned_t<Number>;
    if (!has(sizeof(Bits))) return 0;
    Bits bits = 0;
    for (std::size_t i = 0; i < sizeof bits; ++i) bits |= static_cast<Bits>(Bits{bytes_[i]} << (8 * i));
    bytes_ = bytes_.subspan(sizeof bits);
    return static_cast<Number>(bits);
  }
  std::string text() {
    const auto length = number<std::uint32_t>();
    if (!has(length)) return {};
    std::string value(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return value;
  }
  std::vector<std::string> list() {
    const auto count = number<std::uint32_t>();
    std::vector<std::string> values;
    for (std::uint32_t i = 0; i < count && good_; ++i) values.push_back(text());
    return values;
  }
  bool finished() const { return good_ && bytes_.empty(); }

 private:
  bool has(std::size_t count) {
    good_ = good_ && bytes_.size() >= count;
    return good_;
  }
  std::span<const std::uint8_t> bytes_;
  bool good_ = true;
};

}  // namespace

std::vector<std::uint8_t> encode(const Message& message) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(message.kind));
  writer.number(message.sequence);
  writer.number(message.id);
  writer.number(message.number);
  writer.list(message.arguments);
  writer.list(message.environment);
  writer.text(message.text);
  writer.text(message.blob);
  return writer.take();
}

std::optional<Message> decode(std::span<const std::uint8_t> bytes) {
  Reader reader(bytes);
  Message message;
  message.kind = static_cast<MessageKind>(reader.number<std::uint8_t>());
  message.sequence = reader.number<std::uint32_t>();
  message.id = reader.number<std::uint64_t>();
  message.number = reader.number<std::int32_t>();
  message.arguments = reader.list();
  message.environment = reader.list();
  message.text = reader.text();
  message.blob = reader.text();
  if (!reader.finished()) return std::nullopt;
  return message;
}

}  // namespace molly::base
