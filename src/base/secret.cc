#include "base/secret.h"

#include <openssl/crypto.h>

namespace molly::base {

void wipe(void* data, std::size_t size) noexcept { OPENSSL_cleanse(data, size); }

Secret::Secret(std::string_view text) : text_(text) {}

Secret Secret::take(std::string& text) {
  // A copy and a wipe: moving would leave short texts readable in the string's own buffer.
  Secret secret{std::string_view(text)};
  wipe(text.data(), text.size());
  text.clear();
  return secret;
}

Secret::Secret(const Secret& other) : Secret(other.reveal()) {}

Secret::Secret(Secret&& other) noexcept : text_(std::move(other.text_)) { other.clear(); }

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) {
    Secret copy(other);
    *this = std::move(copy);
  }
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    clear();
    text_.swap(other.text_);
    other.clear();
  }
  return *this;
}

Secret::~Secret() { clear(); }

bool Secret::operator==(const Secret& other) const {
  return text_.size() == other.text_.size() && CRYPTO_memcmp(text_.data(), other.text_.data(), text_.size()) == 0;
}

// The whole capacity is overwritten: an earlier, longer text may still stand behind the end.
void Secret::clear() noexcept {
  text_.resize(text_.capacity());
  wipe(text_.data(), text_.size());
  text_.clear();
}

}  // namespace molly::base
