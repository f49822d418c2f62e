#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/ids.h"
#include "core/tier.h"

namespace molly::policy {

class Clearance;

struct Raw {};     // as it came
struct Public {};  // explicitly declared public, and nothing known says otherwise

// The exact bytes for one target, and what they may be. Bytes never change once they are in; a payload
// moves, it is not copied. The state can only be won from policy.
template <class State>
class Payload {
 public:
  Payload(Payload&& other) noexcept = default;
  Payload& operator=(Payload&& other) noexcept = default;
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  std::string_view bytes() const { return bytes_; }
  // SHA-256 of bytes(), computed when the payload was made.
  const Digest& digest() const { return digest_; }

 private:
  friend Payload<Raw> accept(std::string bytes);
  friend Result<Payload<Public>> as_public(const Clearance& clearance, Payload<Raw> payload);

  Payload(std::string bytes, const Digest& digest) : bytes_(std::move(bytes)), digest_(digest) {}

  std::string bytes_;
  Digest digest_;
};

extern template class Payload<Raw>;
extern template class Payload<Public>;

// Any encoded body. Hashes it: 0.3 microseconds plus 0.6 a kilobyte.
Payload<Raw> accept(std::string bytes);

// Succeeds only for a request that was explicitly declared public and whose label still is.
Result<Payload<Public>> as_public(const Clearance& clearance, Payload<Raw> payload);

// What a tier may carry: external APIs only what was declared public.
namespace detail {
template <Tier tier>
struct WireState {
  using type = Raw;
};
template <>
struct WireState<Tier::t3> {
  using type = Public;
};
}  // namespace detail
template <Tier tier>
using Wire = typename detail::WireState<tier>::type;

}  // namespace molly::policy
