#include "policy/permit.h"

#include <format>

#include "audit/digest.h"
#include "policy/engine.h"

namespace molly::policy {

template class Payload<Raw>;
template class Payload<Public>;
template class Permit<Tier::t0>;
template class Permit<Tier::t1>;
template class Permit<Tier::t2>;
template class Permit<Tier::t3>;

namespace {

std::unexpected<Error> refused(std::string sentence) { return failure(ErrorCode::forbidden, std::move(sentence)); }

bool is_durable_enough(audit::Durability durability, Tier tier) {
  if (durability == audit::Durability::unrecorded) return tier <= Tier::t1;
  return durability >= required_durability(tier);
}

Result<void> check(Tier tier, const Clearance& clearance, std::string_view target, const Digest& payload,
                   const audit::Receipt& receipt) {
  const TargetFacts* facts = clearance.engine().find(target);
  if (!facts || !clearance.allows(target)) return refused(std::format("Target {} is not cleared.", target));
  if (facts->tier != tier) return refused(std::format("Target {} is not in tier {}.", target, to_string(tier)));
  if (receipt.kind() != audit::Kind::dispatch || receipt.target() != target || receipt.payload() != payload ||
      !receipt.trace())
    return refused("The audit record is not that of this dispatch.");
  if (!is_durable_enough(receipt.durability(), tier))
    return refused(std::format("{} needs its audit record on disk first.", to_string(tier)));
  return {};
}

template <Tier tier>
Result<AnyDispatch> dispatch(const Clearance& clearance, std::string_view target, Payload<Wire<tier>> payload,
                             audit::Receipt receipt) {
  auto permit = authorise<tier>(clearance, target, payload, std::move(receipt));
  if (!permit) return std::unexpected(std::move(permit.error()));
  return Dispatch<tier>{std::move(*permit), std::move(payload)};
}

}  // namespace

Payload<Raw> accept(std::string bytes) {
  const Digest digest = audit::sha256(bytes);
  return Payload<Raw>(std::move(bytes), digest);
}

Result<Payload<Public>> as_public(const Clearance& clearance, Payload<Raw> payload) {
  if (!clearance.declared_public() || clearance.label().confidentiality != labels::Confidentiality::public_)
    return refused("Only a request that was explicitly declared public can become a public payload.");
  return Payload<Public>(std::move(payload.bytes_), payload.digest_);
}

audit::Record dispatch_record(const Clearance& clearance, std::string_view target, const Digest& payload,
                              const TraceId& trace, std::string_view key_id) {
  audit::Record record{.kind = audit::Kind::dispatch};
  record.trace = trace;
  record.policy = clearance.policy_digest();
  record.key_id = key_id;
  record.label = labels::to_string(clearance.label());
  record.target = target;
  if (const TargetFacts* facts = clearance.engine().find(target)) record.tier = facts->tier;
  record.payload = payload;
  return record;
}

template <Tier tier>
Result<Permit<tier>> authorise(const Clearance& clearance, std::string_view target, const Payload<Wire<tier>>& payload,
                               audit::Receipt receipt) {
  if (auto fit = check(tier, clearance, target, payload.digest(), receipt); !fit)
    return std::unexpected(std::move(fit.error()));
  return Permit<tier>(std::string(target), *receipt.trace(), payload.digest(), receipt.sequence());
}

template Result<Permit<Tier::t0>> authorise<Tier::t0>(const Clearance&, std::string_view,
                                                      const Payload<Wire<Tier::t0>>&, audit::Receipt);
template Result<Permit<Tier::t1>> authorise<Tier::t1>(const Clearance&, std::string_view,
                                                      const Payload<Wire<Tier::t1>>&, audit::Receipt);
template Result<Permit<Tier::t2>> authorise<Tier::t2>(const Clearance&, std::string_view,
                                                      const Payload<Wire<Tier::t2>>&, audit::Receipt);
template Result<Permit<Tier::t3>> authorise<Tier::t3>(const Clearance&, std::string_view,
                                                      const Payload<Wire<Tier::t3>>&, audit::Receipt);

Result<AnyDispatch> authorise(const Clearance& clearance, std::string_view target, Payload<Raw> payload,
                              audit::Receipt receipt) {
  const TargetFacts* facts = clearance.engine().find(target);
  if (!facts) return refused(std::format("Target {} is not cleared.", target));
  switch (facts->tier) {
    case Tier::t0: return dispatch<Tier::t0>(clearance, target, std::move(payload), std::move(receipt));
    case Tier::t1: return dispatch<Tier::t1>(clearance, target, std::move(payload), std::move(receipt));
    case Tier::t2: return dispatch<Tier::t2>(clearance, target, std::move(payload), std::move(receipt));
    case Tier::t3: break;
  }
  auto declared = as_public(clearance, std::move(payload));
  if (!declared) return std::unexpected(std::move(declared.error()));
  return dispatch<Tier::t3>(clearance, target, std::move(*declared), std::move(receipt));
}

}  // namespace molly::policy
