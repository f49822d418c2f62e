#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace molly::engine {

// Turns the pieces of tokens into text that may be sent: whole UTF-8 characters only, nothing of a stop string, and
// nothing that may still become one.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // What may be sent after this piece.
  std::string append(std::string_view piece);
  // At the end of the answer: what was held back. Bytes that are no UTF-8 become U+FFFD.
  std::string finish();
  // A stop string was found; everything from its first byte on is gone.
  bool stopped() const { return stopped_; }

 private:
  std::string release(std::size_t bytes);

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace molly::engine
