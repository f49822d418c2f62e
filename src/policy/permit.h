#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "audit/log.h"
#include "core/error.h"
#include "core/ids.h"
#include "core/tier.h"
#include "policy/clearance.h"
#include "policy/payload.h"

// The way from a clearance to bytes on a wire:
//
//   auto payload = policy::accept(encoded_body);
//   auto receipt = log.append(policy::dispatch_record(clearance, target, payload.digest(), trace, key_id));
//   auto dispatch = policy::authorise(clearance, target, std::move(payload), std::move(*receipt));
//   std::visit([&](auto& d) { return door.send(std::move(d.permit), std::move(d.payload)); }, *dispatch);
//
// The audit record comes first, so no permit exists without its record.
namespace molly::policy {

// Proof that one payload may go to one target, once. Made only by authorise.
template <Tier tier>
class Permit {
 public:
  Permit(Permit&& other) noexcept
      : target_(std::move(other.target_)),
        trace_(other.trace_),
        payload_(other.payload_),
        record_(other.record_),
        spent_(std::exchange(other.spent_, true)) {}
  Permit& operator=(Permit&&) = delete;
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

  const std::string& target() const { return target_; }
  const TraceId& trace() const { return trace_; }
  std::uint64_t record() const { return record_; }  // sequence of the audit record; 0: served unrecorded

  // Uses the permit up, whether or not it fits: forbidden when it was spent or moved from before, or was
  // made for another target or other bytes.
  [[nodiscard]] Result<void> spend(std::string_view target, const Digest& payload) {
    if (std::exchange(spent_, true)) return failure(ErrorCode::forbidden, "This permit was already used.");
    if (target != target_) return failure(ErrorCode::forbidden, "This permit is for another target.");
    if (payload != payload_) return failure(ErrorCode::forbidden, "This permit is for other bytes.");
    return {};
  }

 private:
  template <Tier t>
  friend Result<Permit<t>> authorise(const Clearance& clearance, std::string_view target,
                                     const Payload<Wire<t>>& payload, audit::Receipt receipt);

  Permit(std::string target, const TraceId& trace, const Digest& payload, std::uint64_t record)
      : target_(std::move(target)), trace_(trace), payload_(payload), record_(record) {}

  std::string target_;
  TraceId trace_;
  Digest payload_;
  std::uint64_t record_;
  bool spent_ = false;
};

// What a dispatch to this tier must have behind it. While the audit log is failing, T0 and T1 also go on
// with a receipt of Durability::unrecorded, which the log gives out and counts; T2 and T3 are refused.
constexpr audit::Durability required_durability(Tier tier) {
  return tier >= Tier::t2 ? audit::Durability::synced : audit::Durability::kernel;
}

// The audit record that must be written before `authorise`.
audit::Record dispatch_record(const Clearance& clearance, std::string_view target, const Digest& payload,
                              const TraceId& trace, std::string_view key_id);

// Refuses (forbidden) unless the clearance allows the target, the target has this tier, and the receipt is
// that of the dispatch record for these bytes and this target, durable enough for the tier.
template <Tier tier>
[[nodiscard]] Result<Permit<tier>> authorise(const Clearance& clearance, std::string_view target,
                                             const Payload<Wire<tier>>& payload, audit::Receipt receipt);

// Instantiated in permit.cc alone, so that nobody can specialise them into a back door.
extern template class Permit<Tier::t0>;
extern template class Permit<Tier::t1>;
extern template class Permit<Tier::t2>;
extern template class Permit<Tier::t3>;
#define MOLLY_AUTHORISE(tier)                                                                                          \
  extern template Result<Permit<tier>> authorise<tier>(const Clearance&, std::string_view, const Payload<Wire<tier>>&, \
                                                       audit::Receipt);
MOLLY_AUTHORISE(Tier::t0)
MOLLY_AUTHORISE(Tier::t1)
MOLLY_AUTHORISE(Tier::t2)
MOLLY_AUTHORISE(Tier::t3)
#undef MOLLY_AUTHORISE

// A payload with its permit, ready for the door.
template <Tier tier>
struct Dispatch {
  static constexpr Tier at = tier;
  Permit<tier> permit;
  Payload<Wire<tier>> payload;
};

using AnyDispatch = std::variant<Dispatch<Tier::t0>, Dispatch<Tier::t1>, Dispatch<Tier::t2>, Dispatch<Tier::t3>>;

// The same where the tier is known only at run time: the target's own. For T3 the payload is first made
// Public (as_public), which fails unless the request was declared so.
[[nodiscard]] Result<AnyDispatch> authorise(const Clearance& clearance, std::string_view target, Payload<Raw> payload,
                                            audit::Receipt receipt);

}  // namespace molly::policy
