#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/request.h"
#include "core/target.h"
#include "egress/endpoint.h"
#include "targets/breaker.h"
#include "targets/failure.h"
#include "wire/openai.h"
#include "wire/token_count.h"

namespace molly::targets {

// A place at a target for one request: holds its concurrency slot and, for a model process, keeps it loaded.
// Give it a verdict before it dies, or the breaker learns nothing from it.
class Reservation {
 public:
  virtual ~Reservation() = default;
  // Where to send; valid as long as the reservation.
  virtual const egress::Endpoint& endpoint() const = 0;
  // FailureKind::none is success. At most one verdict counts.
  virtual void settle(FailureKind verdict) = 0;
};

// On whose behalf a request is sent: told to model processes of our own only.
struct Behalf {
  std::string cache_domain;  // equal for requests that may profit from each other's cached prefixes; empty: nobody's
  std::string member;        // who shares the process fairly with the others
};

// Something that can answer, seen by the pipeline. Shared by all network threads; thread-safe.
class Target {
 public:
  virtual ~Target() = default;

  virtual const TargetDescription& description() const = 0;
  // What it honours of a request's parameters.
  virtual const wire::ParameterSupport& support() const = 0;
  virtual molly::Health health(Breaker::Clock::time_point now) const = 0;
  // Why it is not ready, for people; empty when it is.
  virtual std::string health_reason(Breaker::Clock::time_point now) const = 0;
  // The body that it would be sent for this request.
  virtual std::string encode(const Request& request, const Behalf& behalf) const = 0;
  // Parameters of this request that encode() leaves out because the target would ignore them; not fatal.
  virtual std::vector<std::string> dropped(const Request& request) const = 0;
  // What it can be asked for the exact number of the request's tokens; empty where it cannot say.
  virtual std::vector<wire::CountQuery> count_queries(const Request& request) const = 0;
  // Takes a place. A model process is started when need be and waits its turn: cancellable, bounded by `deadline`.
  virtual boost::asio::awaitable<Attempt<std::unique_ptr<Reservation>>> reserve(
      std::chrono::steady_clock::time_point deadline) = 0;
};

}  // namespace molly::targets
