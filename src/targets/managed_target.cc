#include "targets/managed_target.h"

#include <algorithm>

#include "base/json_writer.h"

namespace molly::targets {
namespace {

namespace asio = boost::asio;

class LeasedPlace : public Reservation {
 public:
  LeasedPlace(Lease lease, const std::string& target) : lease_(std::move(lease)) {
    endpoint_.target = target;
    endpoint_.tier = Tier::t0;
    endpoint_.scheme = egress::Scheme::unix_socket;
    endpoint_.socket = lease_.model().socket;
    endpoint_.base_path = "/v1";
    endpoint_.key = lease_.model().key;
    endpoint_.connections = 256;
    // The supervisor watches the process itself: a slow answer from it is slow, not lost.
    endpoint_.deadlines.first_byte = std::chrono::minutes(30);
    endpoint_.deadlines.idle = std::chrono::minutes(10);
  }
  const egress::Endpoint& endpoint() const override { return endpoint_; }
  void settle(FailureKind) override {}

 private:
  Lease lease_;
  egress::Endpoint endpoint_;
};

// Whom a request is for is Molly's to say: what the client wrote under these names is not passed on.
constexpr std::string_view said_by_molly[] = {"cache_domain", "member", "priority"};

void set_behalf(Request& request, const Behalf& behalf) {
  std::erase_if(request.extra, [](const auto& field) { return std::ranges::contains(said_by_molly, field.first); });
  if (!behalf.cache_domain.empty())
    request.extra.emplace_back("cache_domain", RawJson{base::json_string(behalf.cache_domain)});
  if (!behalf.member.empty()) request.extra.emplace_back("member", RawJson{base::json_string(behalf.member)});
}

FailureKind kind_of(ErrorCode code) {
  return code == ErrorCode::overloaded ? FailureKind::busy : FailureKind::not_ready;
}

}  // namespace

ManagedTarget::ManagedTarget(TargetDescription description, wire::ParameterSupport support, ModelServer server,
                             Supervisor& supervisor)
    : description_(std::move(description)), support_(support), server_(server), supervisor_(supervisor) {}

ModelStatus ManagedTarget::status() const {
  if (auto known = supervisor_.status(description_.name)) return std::move(*known);
  return ModelStatus{.name = description_.name, .state = ModelState::failed, .reason = "not known to the supervisor"};
}

molly::Health ManagedTarget::health(Breaker::Clock::time_point) const {
  switch (status().state) {
    case ModelState::ready: return molly::Health::ready;
    case ModelState::failed: return molly::Health::failing;
    default: return molly::Health::cold;
  }
}

std::string ManagedTarget::health_reason(Breaker::Clock::time_point) const { return status().reason; }

std::string ManagedTarget::encode(const Request& request, const Behalf& behalf) const {
  wire::EncodeOptions options{.model = description_.model};
  if (request.stream) options.include_usage = true;
  const bool to_engine = server_ == ModelServer::molly_engine;
  if (!to_engine && dropped(request).empty()) return wire::encode_request(request, options);
  Request honoured = request;
  honoured.reasoning_effort.reset();
  if (to_engine) set_behalf(honoured, behalf);
  return wire::encode_request(honoured, options);
}

std::vector<std::string> ManagedTarget::dropped(const Request& request) const {
  if (request.reasoning_effort) return {"reasoning_effort"};
  return {};
}

asio::awaitable<Attempt<std::unique_ptr<Reservation>>> ManagedTarget::reserve(
    std::chrono::steady_clock::time_point deadline) {
  auto lease = co_await supervisor_.acquire(description_.name, deadline);
  if (!lease) co_return std::unexpected(Failure{kind_of(lease.error().code), std::move(lease.error()), 0});
  co_return std::make_unique<LeasedPlace>(std::move(*lease), description_.name);
}

}  // namespace molly::targets
