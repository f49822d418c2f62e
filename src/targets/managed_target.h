#pragma once

#include "targets/settings.h"
#include "targets/supervisor.h"
#include "targets/target.h"

namespace molly::targets {

// A model file that Molly serves itself, through one child process.
class ManagedTarget : public Target {
 public:
  // `supervisor` must outlive the target and know the model under the description's name.
  ManagedTarget(TargetDescription description, wire::ParameterSupport support, ModelServer server,
                Supervisor& supervisor);

  const TargetDescription& description() const override { return description_; }
  const wire::ParameterSupport& support() const override { return support_; }
  molly::Health health(Breaker::Clock::time_point now) const override;
  std::string health_reason(Breaker::Clock::time_point now) const override;
  std::string encode(const Request& request, const Behalf& behalf) const override;
  std::vector<std::string> dropped(const Request& request) const override;
  std::vector<wire::CountQuery> count_queries(const Request& request) const override {
    return wire::count_queries(request);
  }
  boost::asio::awaitable<Attempt<std::unique_ptr<Reservation>>> reserve(
      std::chrono::steady_clock::time_point deadline) override;

 private:
  ModelStatus status() const;

  TargetDescription description_;
  wire::ParameterSupport support_;
  ModelServer server_;
  Supervisor& supervisor_;
};

}  // namespace molly::targets
