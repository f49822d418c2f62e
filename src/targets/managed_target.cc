#include "targets/managed_target.h"

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

FailureKind kind_of(ErrorCode code) {
  return code == ErrorCode::overloaded ? FailureKind::busy : FailureKind::not_ready;
}

}  // namespace

ManagedTarget::ManagedTarget(TargetDescription description, wire::ParameterSupport support, Supervisor& supervisor)
    : description_(std::move(description)), support_(support), supervisor_(supervisor) {}

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

std::string ManagedTarget::encode(const Request& request) const {
  wire::EncodeOptions options{.model = description_.model};
  if (request.stream) options.include_usage = true;
  if (dropped(request).empty()) return wire::encode_request(request, options);
  Request honoured = request;
  honoured.reasoning_effort.reset();
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
