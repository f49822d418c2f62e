#include "targets/openai_target.h"

#include "base/text.h"

namespace molly::targets {

namespace asio = boost::asio;

class OpenAiTarget::Place : public Reservation {
 public:
  explicit Place(OpenAiTarget& target) : target_(target) {}
  ~Place() override {
    if (!settled_) target_.breaker_.abandoned();
    target_.in_flight_.fetch_sub(1);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const egress::Endpoint& endpoint() const override { return target_.endpoint_; }

  void settle(FailureKind verdict) override {
    if (std::exchange(settled_, true)) return;
    if (counts_against_target(verdict)) {
      target_.breaker_.failed(Breaker::Clock::now());
    } else if (verdict == FailureKind::none) {
      target_.breaker_.succeeded();
    } else {
      target_.breaker_.abandoned();
    }
  }

 private:
  OpenAiTarget& target_;
  bool settled_ = false;
};

OpenAiTarget::OpenAiTarget(TargetSettings settings, egress::Endpoint endpoint)
    : settings_(std::move(settings)), endpoint_(std::move(endpoint)) {}

Result<std::shared_ptr<OpenAiTarget>> OpenAiTarget::create(TargetSettings settings, egress::PlainLoopback plain) {
  const TargetDescription& description = settings.description;
  auto endpoint = egress::parse_endpoint(description.name, description.tier, settings.url);
  if (!endpoint) return std::unexpected(Error{ErrorCode::config_invalid, endpoint.error().message, "url"});
  if (!settings.pin.empty()) {
    auto pin = egress::parse_pin(settings.pin);
    if (!pin) return std::unexpected(Error{ErrorCode::config_invalid, pin.error().message, "pin"});
    endpoint->pin = *pin;
  }
  if (auto proven = egress::check_tier(*endpoint, plain); !proven) {
    return std::unexpected(Error{ErrorCode::config_invalid, proven.error().message, "tier"});
  }
  if (settings.key) endpoint->key = *settings.key;
  endpoint->is_molly = settings.is_molly;
  endpoint->connections = settings.concurrency;
  endpoint->connect_deadline = settings.connect_deadline;
  endpoint->deadlines.first_byte = settings.first_byte_deadline;
  endpoint->deadlines.idle = settings.idle_deadline;
  return std::shared_ptr<OpenAiTarget>(new OpenAiTarget(std::move(settings), std::move(*endpoint)));
}

molly::Health OpenAiTarget::health(Breaker::Clock::time_point now) const {
  if (breaker_.state(now) == Breaker::State::open) return molly::Health::failing;
  if (in_flight_.load(std::memory_order_relaxed) >= settings_.concurrency) return molly::Health::busy;
  return molly::Health::ready;
}

std::string OpenAiTarget::health_reason(Breaker::Clock::time_point now) const {
  if (const auto pause = breaker_.opens_for(now))
    return "failed lately; tried again in " + base::human_duration(*pause);
  if (health(now) == molly::Health::busy)
    return "at its limit of " + std::to_string(settings_.concurrency) + " requests";
  return {};
}

std::string OpenAiTarget::encode(const Request& request, const Behalf&) const {
  wire::EncodeOptions options{.model = settings_.description.model};
  if (request.stream) options.include_usage = true;
  return wire::encode_request(request, options);
}

asio::awaitable<Attempt<std::unique_ptr<Reservation>>> OpenAiTarget::reserve(std::chrono::steady_clock::time_point) {
  if (in_flight_.fetch_add(1) >= settings_.concurrency) {
    in_flight_.fetch_sub(1);
    co_return std::unexpected(
        Failure{FailureKind::busy,
                {ErrorCode::rate_limited, "is at its limit of requests at a time", "", std::chrono::milliseconds(1000)},
                0});
  }
  if (!breaker_.try_pass(Breaker::Clock::now())) {
    in_flight_.fetch_sub(1);
    const auto pause = breaker_.opens_for(Breaker::Clock::now()).value_or(std::chrono::milliseconds(1000));
    co_return std::unexpected(Failure{
        FailureKind::circuit_open, {ErrorCode::unavailable, "failed lately and is not tried again yet", "", pause}, 0});
  }
  co_return std::make_unique<Place>(*this);
}

std::string OpenAiTarget::proof() const {
  if (endpoint_.pin) return "pinned public key";
  if (endpoint_.scheme == egress::Scheme::unix_socket) return "unix socket, its owner checked at each connection";
  if (endpoint_.tier == Tier::t1) return "loopback or on-link private address, checked at each connection";
  return "certificate checked against the system's authorities";
}

}  // namespace molly::targets
