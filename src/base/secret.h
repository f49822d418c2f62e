#pragma once

#include <string>
#include <string_view>

namespace molly::base {

// Overwrites memory in a way that the compiler may not remove.
void wipe(void* data, std::size_t size) noexcept;

// Text that must never be seen: it has no stream operator and no conversion, so that printing or logging it
// does not compile, and its memory is overwritten before it is freed. Equality takes the same time wherever
// the difference is. Not shared between threads without care, like a string.
class Secret {
 public:
  Secret() = default;
  // Takes a copy; the caller's own copy stays the caller's to wipe.
  explicit Secret(std::string_view text);
  // Takes the text over and wipes what is left behind in `text`.
  static Secret take(std::string& text);

  Secret(const Secret& other);
  Secret(Secret&& other) noexcept;
  Secret& operator=(const Secret& other);
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  // The one way to the text: use it for the one purpose that needs it, keep no copy.
  std::string_view reveal() const { return {text_.data(), text_.size()}; }
  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }

  bool operator==(const Secret& other) const;

 private:
  void clear() noexcept;
  std::string text_;
};

}  // namespace molly::base
