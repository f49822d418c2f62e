#pragma once

#include "egress/proof.h"
#include "targets/settings.h"
#include "targets/target.h"

namespace molly::targets {

// Any OpenAI-compatible endpoint over HTTPS, HTTP or a unix socket.
class OpenAiTarget : public Target {
 public:
  // config_invalid when the address, the pin or the tier does not hold.
  static Result<std::shared_ptr<OpenAiTarget>> create(TargetSettings settings, egress::PlainLoopback plain);

  const TargetDescription& description() const override { return settings_.description; }
  const wire::ParameterSupport& support() const override { return support_; }
  molly::Health health(Breaker::Clock::time_point now) const override;
  std::string health_reason(Breaker::Clock::time_point now) const override;
  std::string encode(const Request& request, const Behalf& behalf) const override;
  std::vector<std::string> dropped(const Request&) const override { return {}; }
  std::vector<wire::CountQuery> count_queries(const Request& request) const override {
    return settings_.counts_tokens ? wire::count_queries(request) : std::vector<wire::CountQuery>();
  }
  boost::asio::awaitable<Attempt<std::unique_ptr<Reservation>>> reserve(
      std::chrono::steady_clock::time_point deadline) override;

  const TargetSettings& settings() const { return settings_; }
  // How the tier was verified, for policy: "loopback address", "pinned key", ...
  std::string proof() const;

 private:
  class Place;
  OpenAiTarget(TargetSettings settings, egress::Endpoint endpoint);

  TargetSettings settings_;
  egress::Endpoint endpoint_;
  wire::ParameterSupport support_;
  std::atomic<std::uint32_t> in_flight_{0};
  mutable Breaker breaker_;
};

}  // namespace molly::targets
