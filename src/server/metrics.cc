#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <shared_mutex>

namespace molly::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries seconds_buckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                  0.5,   1,      2.5,   5,    10,    30,   60,  120};
const Histogram::BucketBoundaries decision_buckets{0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.001, 0.01};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// The series of one target, looked up once and then reached through pointers.
struct TargetSeries {
  std::array<Counter*, 5> outcomes{};
  Counter* attempts = nullptr;
  Counter* prompt_tokens = nullptr;
  Counter* completion_tokens = nullptr;
  Histogram* first_token = nullptr;
  Histogram* duration = nullptr;
};

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  Family<Counter>& requests = prometheus::BuildCounter()
                                  .Name("molly_requests_total")
                                  .Help("Requests by final target, tier and outcome")
                                  .Register(registry);
  Family<Counter>& attempts =
      prometheus::BuildCounter().Name("molly_attempts_total").Help("Attempts at targets").Register(registry);
  Family<Counter>& errors =
      prometheus::BuildCounter().Name("molly_errors_total").Help("Errors given to clients, by code").Register(registry);
  Family<Counter>& tokens =
      prometheus::BuildCounter().Name("molly_tokens_total").Help("Tokens by target and kind").Register(registry);
  Family<Histogram>& first_token = prometheus::BuildHistogram()
                                       .Name("molly_time_to_first_token_seconds")
                                       .Help("From the parsed request to the first token")
                                       .Register(registry);
  Family<Histogram>& duration = prometheus::BuildHistogram()
                                    .Name("molly_request_seconds")
                                    .Help("From the parsed request to the last byte")
                                    .Register(registry);
  Histogram& decision = prometheus::BuildHistogram()
                            .Name("molly_decision_seconds")
                            .Help("Annotation, policy and routing of one request")
                            .Register(registry)
                            .Add({}, decision_buckets);
  Family<Gauge>& gauges =
      prometheus::BuildGauge().Name("molly_state").Help("Current state, by name").Register(registry);

  std::shared_mutex mutex;
  std::map<std::string, TargetSeries, std::less<>> series;
  std::array<std::atomic<Counter*>, 32> error_counters{};

  const TargetSeries& series_of(const TargetDescription* target);
  TargetSeries make_series(const TargetDescription* target);
  void count_error(ErrorCode code);
};

TargetSeries Metrics::State::make_series(const TargetDescription* target) {
  const std::string name = target ? target->name : "none";
  const std::string tier = target ? std::string(to_string(target->tier)) : "none";
  TargetSeries out;
  for (std::size_t i = 0; i < out.outcomes.size(); ++i) {
    const auto outcome = std::string(to_string(static_cast<traces::Outcome>(i)));
    out.outcomes[i] = &requests.Add({{"target", name}, {"tier", tier}, {"outcome", outcome}});
  }
  out.attempts = &attempts.Add({{"target", name}});
  out.prompt_tokens = &tokens.Add({{"target", name}, {"kind", "prompt"}});
  out.completion_tokens = &tokens.Add({{"target", name}, {"kind", "completion"}});
  out.first_token = &first_token.Add({{"target", name}, {"tier", tier}}, seconds_buckets);
  out.duration = &duration.Add({{"target", name}, {"tier", tier}}, seconds_buckets);
  return out;
}

const TargetSeries& Metrics::State::series_of(const TargetDescription* target) {
  const std::string_view name = target ? std::string_view(target->name) : std::string_view("none");
  {
    const std::shared_lock lock(mutex);
    if (const auto found = series.find(name); found != series.end()) return found->second;
  }
  const std::unique_lock lock(mutex);
  if (const auto found = series.find(name); found != series.end()) return found->second;
  return series.emplace(name, make_series(target)).first->second;
}

void Metrics::State::count_error(ErrorCode code) {
  auto& cached = error_counters[static_cast<std::size_t>(code)];
  Counter* counter = cached.load(std::memory_order_acquire);
  if (counter == nullptr) {
    counter = &errors.Add({{"code", std::string(to_string(code))}});
    cached.store(counter, std::memory_order_release);
  }
  counter->Increment();
}

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

void Metrics::observe(const pipeline::Observation& observation) {
  const TargetSeries& series = state_->series_of(observation.target);
  series.outcomes[static_cast<std::size_t>(observation.outcome)]->Increment();
  series.attempts->Increment(observation.attempts);
  if (observation.prompt_tokens > 0) series.prompt_tokens->Increment(static_cast<double>(observation.prompt_tokens));
  if (observation.completion_tokens > 0) {
    series.completion_tokens->Increment(static_cast<double>(observation.completion_tokens));
  }
  if (observation.first_event.count() > 0) series.first_token->Observe(seconds(observation.first_event));
  series.duration->Observe(seconds(observation.total));
  state_->decision.Observe(seconds(observation.decision));
  if (observation.error) state_->count_error(*observation.error);
}

void Metrics::refused(ErrorCode code) { state_->count_error(code); }

std::string Metrics::render(const Gauges& gauges) {
  const auto set = [&](const char* name, double value) { state_->gauges.Add({{"name", name}}).Set(value); };
  set("in_flight", static_cast<double>(gauges.in_flight));
  set("connections", static_cast<double>(gauges.connections));
  set("audit_records", static_cast<double>(gauges.audit_records));
  set("audit_failing", gauges.audit_failing ? 1 : 0);
  set("traces_lost", static_cast<double>(gauges.traces_lost));
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace molly::server
