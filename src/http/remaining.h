#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <span>

namespace molly::http {

// What is still to be written of at most five buffers.
class Remaining {
 public:
  explicit Remaining(std::span<const boost::asio::const_buffer> buffers) {
    for (const boost::asio::const_buffer& buffer : buffers) {
      if (buffer.size() > 0) buffers_.at(count_++) = buffer;
    }
  }
  void consume(std::size_t size) {
    while (first_ < count_ && size >= buffers_[first_].size()) size -= buffers_[first_++].size();
    if (first_ < count_) buffers_[first_] += size;
  }
  bool empty() const { return first_ == count_; }
  std::span<const boost::asio::const_buffer> left() const { return {buffers_.data() + first_, count_ - first_}; }

 private:
  std::array<boost::asio::const_buffer, 5> buffers_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace molly::http
