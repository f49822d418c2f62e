#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/model_file.h"

namespace molly::gguf {

// Little-endian fields, one after another, from a source that may end anywhere. The first failure is kept and every
// read after it gives zero or nothing, so that callers check where it matters: before they loop or allocate.
class Reader {
 public:
  Reader(Source source, std::uint64_t end) : source_(std::move(source)), end_(end) {}

  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  Number number() {
    std::uint8_t bytes[sizeof(Number)] = {};
    copy(bytes);
    Number value{};
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  // Text of `length` bytes; the caller has checked the length against a limit.
  std::string text(std::uint64_t length) {
    if (!has(length)) return {};
    std::string value(length, '\0');
    copy({reinterpret_cast<std::uint8_t*>(value.data()), value.size()});
    return good() ? value : std::string();
  }

  void skip(std::uint64_t length) {
    if (has(length)) position_ += length;
  }

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return end_ - position_; }
  bool good() const { return failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void fail(std::string reason) {
    if (failure_.empty()) failure_ = std::move(reason);
  }

 private:
  bool has(std::uint64_t length) {
    if (good() && length > left()) fail("it ends in the middle of its header");
    return good();
  }

  void copy(std::span<std::uint8_t> into) {
    if (!has(into.size())) return;
    while (!into.empty()) {
      if (position_ < buffer_start_ || position_ >= buffer_start_ + buffer_size_) {
        if (!refill()) return;
      }
      const std::size_t from = position_ - buffer_start_;
      const std::size_t count = std::min(into.size(), buffer_size_ - from);
      std::memcpy(into.data(), buffer_.data() + from, count);
      into = into.subspan(count);
      position_ += count;
    }
  }

  bool refill() {
    buffer_.resize(64 * 1024);
    buffer_start_ = position_;
    buffer_size_ = source_(position_, buffer_);
    if (buffer_size_ == 0) fail("it ends in the middle of its header");
    return good();
  }

  Source source_;
  std::uint64_t end_;
  std::uint64_t position_ = 0;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t buffer_start_ = 0;
  std::size_t buffer_size_ = 0;
  std::string failure_;
};

}  // namespace molly::gguf
