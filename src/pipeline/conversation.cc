#include "pipeline/conversation.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "pipeline/verdicts.h"
#include "policy/engine.h"
#include "policy/explain.h"
#include "wire/openai.h"

namespace molly::pipeline {
namespace {

namespace asio = boost::asio;
using targets::Attempt;
using targets::Failure;
using targets::FailureKind;

std::unexpected<Failure> failed(FailureKind kind, Error error) {
  return std::unexpected(Failure{kind, std::move(error), 0});
}

// Resumes on the caller's own thread once the record is on disk.
asio::awaitable<Result<audit::Receipt>> append_synced(audit::Log& log, const audit::Record& record) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void(Result<audit::Receipt>)>(
      [&log, record](auto handler) {
        auto executor = asio::get_associated_executor(handler);
        log.append_synced(record, [work = asio::make_work_guard(executor), executor,
                                   handler = std::move(handler)](Result<audit::Receipt> receipt) mutable {
          asio::post(executor, [handler = std::move(handler), receipt = std::move(receipt)]() mutable {
            std::move(handler)(std::move(receipt));
          });
        });
      },
      asio::use_awaitable);
}

bool has_end(std::span<const Event> events) {
  return !events.empty() &&
         (std::holds_alternative<Done>(events.back()) || std::holds_alternative<Failed>(events.back()));
}

std::vector<Event> moved(std::span<Event> events) {
  return {std::make_move_iterator(events.begin()), std::make_move_iterator(events.end())};
}

std::uint32_t choices_of(const Request& request) {
  const auto prompts = std::max<std::size_t>(request.prompts.size(), 1);
  return request.n.value_or(1) * static_cast<std::uint32_t>(prompts);
}

std::uint32_t milliseconds_since(std::chrono::steady_clock::time_point began) {
  const auto passed = std::chrono::steady_clock::now() - began;
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
}

}  // namespace

Conversation::Conversation(Services& services, Request request, Caller caller)
    : services_(services),
      runtime_(services.runtime.snapshot()),
      request_(std::move(request)),
      caller_(std::move(caller)) {
  record_.trace = TraceId::generate();
  record_.time = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  record_.catalogue = runtime_->catalogue;
  record_.endpoint =
      request_.endpoint == Endpoint::chat ? traces::EndpointKind::chat : traces::EndpointKind::completions;
  record_.stream = request_.stream;
  record_.model = request_.model;
  record_.application = caller_.application;
  if (caller_.key) {
    record_.member = caller_.key->member;
    record_.key_id = caller_.key->id;
  }
  observation_.endpoint = request_.endpoint;
}

Conversation::~Conversation() {
  if (!finished_) finish(traces::Outcome::cancelled, ErrorCode::cancelled);
}

asio::awaitable<Result<void>> Conversation::begin(egress::Door& door) {
  if (auto decided = decide(); !decided) {
    finish(traces::Outcome::refused, decided.error().code);
    co_return decided;
  }
  for (const routing::Candidate& candidate : route_.candidates) {
    const auto began = Clock::now();
    const auto tried = co_await try_candidate(door, candidate);
    if (tried) {
      succeed(candidate.target);
      co_return Result<void>{};
    }
    note_attempt(candidate.target, began, tried.error());
    if (interrupted_ || !may_fall_back(tried.error().kind)) break;
  }
  Error error = interrupted_ ? *interrupted_ : all_failed();
  finish(traces::Outcome::failed, error.code);
  co_return std::unexpected(std::move(error));
}

Result<void> Conversation::decide() {
  const auto selection = select(*runtime_, request_.model);
  if (!selection) return std::unexpected(selection.error());
  if (caller_.key && !caller_.key->scope.models.empty() &&
      !std::ranges::contains(caller_.key->scope.models, request_.model.empty() ? "auto" : request_.model)) {
    return failure(ErrorCode::forbidden, "this key may not ask for the model '" + request_.model + "'", "model");
  }
  clearance_ = runtime_->engine->clear(sovereignty_profile(caller_, request_.model), std::chrono::system_clock::now());
  const auto profile = routing::capability_profile(request_, wire::token_upper_bound(request_));
  const auto all = views();
  route_ = routing::choose(all, *selection, profile);
  std::erase_if(route_.candidates, [&](const routing::Candidate& candidate) {
    return !honours_request(*runtime_->targets[candidate.target]);
  });
  record_.modalities = profile.needs;
  record_.needs_tools = profile.needs_tools;
  record_.structured = request_.response_format.kind == ResponseFormat::Kind::json_object ||
                       request_.response_format.kind == ResponseFormat::Kind::json_schema;
  record_.token_upper_bound = profile.token_upper_bound;
  record_decision(all);
  observation_.decision = Clock::now() - began_;
  if (!route_.candidates.empty()) return {};
  return std::unexpected(no_candidate());
}

std::vector<routing::TargetView> Conversation::views() const {
  std::vector<routing::TargetView> out;
  out.reserve(runtime_->targets.size());
  const auto now = Clock::now();
  for (const auto& target : runtime_->targets) {
    const TargetDescription& description = target->description();
    out.push_back({&description, target->health(now), clearance_->allows(description.name)});
  }
  return out;
}

bool Conversation::honours_request(const targets::Target& target) {
  return wire::unsupported_parameters(request_, target.support()).empty();
}

void Conversation::record_decision(const std::vector<routing::TargetView>& all) {
  record_.label = labels::to_string(clearance_->label());
  record_.max_tier = Tier::t0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    record_.targets.push_back({static_cast<std::uint16_t>(i), traces::Verdict::unsupported, traces::no_rule});
    if (all[i].cleared) record_.max_tier = std::max(record_.max_tier, all[i].description->tier);
  }
  for (const routing::Rejection& rejection : route_.rejections) {
    record_.targets[rejection.target].verdict = verdict_of(rejection.fit);
  }
  for (const routing::Candidate& candidate : route_.candidates) {
    record_.targets[candidate.target].verdict = traces::Verdict::cleared;
    record_.route.push_back({static_cast<std::uint16_t>(candidate.target), reason_of(candidate.health)});
  }
  // The engine knows the same targets in the same order.
  for (auto& decision : record_.targets) {
    const bool cleared = all[decision.target].cleared;
    if (!cleared) decision.verdict = verdict_of(clearance_->code(decision.target));
    if (!cleared || decision.verdict == traces::Verdict::cleared) {
      decision.rule = clearance_->deciding_rule(decision.target);
    }
  }
}

Error Conversation::no_candidate() const {
  if (runtime_->targets.empty()) {
    return {ErrorCode::unavailable, "no target is configured: add a model with 'molly models add FILE.gguf'", ""};
  }
  const bool policy_leaves_one = std::ranges::any_of(record_.targets, [&](const traces::TargetDecision& decision) {
    return decision.verdict != traces::Verdict::not_selected &&
           clearance_->allows(runtime_->targets[decision.target]->description().name);
  });
  if (!policy_leaves_one) return policy::refusal(*clearance_);
  std::string message = "no allowed target can do what this request asks for:";
  for (const auto& decision : record_.targets) {
    if (decision.verdict == traces::Verdict::not_selected) continue;
    message += " " + runtime_->targets[decision.target]->description().name + ": ";
    message += decision.verdict == traces::Verdict::unsupported ? "does not honour"
                                                                : std::string(to_sentence(decision.verdict));
    if (decision.verdict == traces::Verdict::unsupported) {
      for (const auto& name : wire::unsupported_parameters(request_, runtime_->targets[decision.target]->support())) {
        message += " " + name;
      }
    }
    message += ";";
  }
  message.pop_back();
  return {ErrorCode::unsupported_parameter, std::move(message), ""};
}

asio::awaitable<Attempt<void>> Conversation::try_candidate(egress::Door& door, const routing::Candidate& candidate) {
  targets::Target& target = *runtime_->targets[candidate.target];
  auto reserved = co_await target.reserve(Clock::now() + services_.reserve_deadline);
  if (!reserved) co_return std::unexpected(std::move(reserved.error()));
  reservation_ = std::move(*reserved);
  Attempt<void> answered{};
  if (candidate.fit == routing::Fit::count_needed) answered = co_await check_length(door, target);
  if (answered) answered = co_await ask_target(door, target);
  if (!answered) {
    reservation_->settle(answered.error().kind);
    answer_.reset();
    reservation_.reset();
    early_.clear();
  }
  co_return answered;
}

asio::awaitable<Attempt<void>> Conversation::check_length(egress::Door& door, const targets::Target& target) {
  std::uint64_t longest = 0;
  for (wire::CountQuery& query : target.count_queries(request_)) {
    auto dispatch = co_await authorise(target, std::move(query.body));
    if (!dispatch) co_return std::unexpected(std::move(dispatch.error()));
    const auto count = co_await targets::count_tokens(door, reservation_->endpoint(), std::move(*dispatch), query.path);
    if (!count) co_return std::unexpected(count.error());
    if (!*count) co_return Attempt<void>{};
    longest = std::max(longest, **count);
  }
  if (longest == 0) co_return Attempt<void>{};
  record_.exact_tokens = longest;
  const std::uint32_t context = target.description().context_length.value_or(0);
  if (routing::fits_context(longest, 1, context)) co_return Attempt<void>{};
  co_return failed(FailureKind::too_long,
                   {ErrorCode::context_length_exceeded,
                    "the prompt has " + std::to_string(longest) + " tokens, and the context of " +
                        target.description().name + " holds " + std::to_string(context) + " with the answer",
                    "messages"});
}

// Cached prefixes are shared among the requests of one member under one label.
targets::Behalf Conversation::behalf() const {
  std::string member = caller_.key ? "member:" + caller_.key->member : "owner";
  return {.cache_domain = member + '|' + labels::to_string(clearance_->label()), .member = std::move(member)};
}

asio::awaitable<Attempt<void>> Conversation::ask_target(egress::Door& door, const targets::Target& target) {
  auto dispatch = co_await authorise(target, target.encode(request_, behalf()));
  if (!dispatch) co_return std::unexpected(std::move(dispatch.error()));
  record_.dropped = target.dropped(request_);
  targets::Question question{.endpoint = request_.endpoint, .stream = request_.stream, .choices = choices_of(request_)};
  if (reservation_->endpoint().is_molly) question.clearance = clearance_->serialise();
  auto answer = co_await targets::ask(door, reservation_->endpoint(), std::move(*dispatch), std::move(question));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  answer_ = std::move(*answer);
  co_return co_await read_until_committed();
}

asio::awaitable<Attempt<policy::AnyDispatch>> Conversation::authorise(const targets::Target& target, std::string body) {
  const TargetDescription& description = target.description();
  auto payload = policy::accept(std::move(body));
  const audit::Record record =
      policy::dispatch_record(*clearance_, description.name, payload.digest(), record_.trace, caller_.key_id());
  auto receipt = co_await write_record(description, record);
  if (!receipt) co_return failed(FailureKind::unauthorised, std::move(receipt.error()));
  auto dispatch = policy::authorise(*clearance_, description.name, std::move(payload), std::move(*receipt));
  if (!dispatch) co_return failed(FailureKind::unauthorised, std::move(dispatch.error()));
  co_return std::move(*dispatch);
}

asio::awaitable<Result<audit::Receipt>> Conversation::write_record(const TargetDescription& target,
                                                                   const audit::Record& record) {
  if (policy::required_durability(target.tier) == audit::Durability::synced) {
    co_return co_await append_synced(services_.audit, record);
  }
  auto receipt = services_.audit.append(record);
  if (!receipt) receipt = services_.audit.unrecorded(record);
  co_return receipt;
}

asio::awaitable<Attempt<void>> Conversation::read_until_committed() {
  while (true) {
    auto events = co_await answer_->next();
    if (!events) co_return std::unexpected(std::move(events.error()));
    // A token counts even where the error behind it came with the same read.
    const bool token = std::ranges::any_of(*events, commits);
    auto* broken = std::get_if<Failed>(&events->back());
    if (broken && !token) co_return failed(FailureKind::server_error, std::move(broken->error));
    const bool committed = token || has_end(*events);
    if (early_.empty()) {
      early_ = moved(*events);
    } else {
      std::ranges::move(*events, std::back_inserter(early_));
    }
    if (committed) co_return Attempt<void>{};
  }
}

void Conversation::note_attempt(std::uint32_t index, Clock::time_point began, const Failure& failure) {
  record_.attempts.push_back({static_cast<std::uint16_t>(index), outcome_of(failure.kind),
                              static_cast<std::uint16_t>(failure.http_status), milliseconds_since(began)});
  failures_.push_back(failure);
}

void Conversation::succeed(std::uint32_t index) {
  const TargetDescription& target = runtime_->targets[index]->description();
  record_.final_target = static_cast<std::uint16_t>(index);
  record_.attempts.push_back(
      {static_cast<std::uint16_t>(index), traces::AttemptOutcome::answered, 200, milliseconds_since(began_)});
  observation_.target = &target;
  observation_.first_event = Clock::now() - began_;
  route_text_ = target.name + "; tier=" + std::string(to_string(target.tier)) + "; zone=" + target.zone;
  if (!answer_->remote_route().empty()) route_text_ += "; via=" + answer_->remote_route();
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    route_text_ += i == 0 ? "; after=" : ",";
    route_text_ += runtime_->targets[record_.attempts[i].target]->description().name;
    route_text_ += ":" + std::string(to_string(failures_[i].kind));
  }
}

Error Conversation::all_failed() const {
  const auto every = [&](FailureKind kind) {
    return std::ranges::all_of(failures_, [&](const Failure& failure) { return failure.kind == kind; });
  };
  const Failure& last = failures_.back();
  if (last.kind == FailureKind::rejected || every(FailureKind::too_long)) return last.error;
  Error error{ErrorCode::upstream_failed, failures_.size() == 1 ? "" : "every allowed target failed: ", ""};
  if (every(FailureKind::busy) || every(FailureKind::rate_limited)) error.code = ErrorCode::rate_limited;
  if (failures_.size() == 1) error.code = last.error.code;
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    if (i > 0) error.message += "; ";
    error.message +=
        runtime_->targets[record_.attempts[i].target]->description().name + ": " + failures_[i].error.message;
    const auto& retry = failures_[i].error.retry_after;
    if (retry && (!error.retry_after || *retry < *error.retry_after)) error.retry_after = retry;
  }
  if (error.code == ErrorCode::rate_limited && !error.retry_after) error.retry_after = std::chrono::seconds(1);
  return error;
}

asio::awaitable<std::span<Event>> Conversation::next() {
  if (ended_) co_return std::span<Event>{};
  std::span<Event> events;
  if (!early_.empty()) {
    last_ = std::exchange(early_, {});
    events = last_;
  } else if (auto read = co_await answer_->next()) {
    events = *read;
  } else {
    last_.assign(1, Failed{broken_off(read.error())});
    events = last_;
  }
  take_usage(events);
  if (has_end(events)) {
    ended_ = true;
    const auto* broken = std::get_if<Failed>(&events.back());
    if (!broken) reservation_->settle(FailureKind::none);
    finish(broken ? traces::Outcome::failed_midstream : traces::Outcome::answered,
           broken ? std::optional(broken->error.code) : std::nullopt);
  }
  co_return events;
}

Error Conversation::broken_off(const Failure& failure) {
  if (interrupted_) return *interrupted_;
  reservation_->settle(failure.kind);
  return {ErrorCode::upstream_failed, "the target broke off in the middle of its answer: " + failure.error.message, ""};
}

void Conversation::interrupt(Error reason) {
  interrupted_ = std::move(reason);
  if (answer_) answer_->abort();
}

void Conversation::drain(const asio::any_io_executor& executor) {
  if (!answer_ || record_.outcome != traces::Outcome::answered) return;
  // On its own: a target that ends its answer late must not hold the client's next request up.
  asio::co_spawn(
      executor, [answer = std::move(answer_)]() -> asio::awaitable<void> { co_await answer->drain(); }, asio::detached);
}

void Conversation::take_usage(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const auto* report = std::get_if<UsageReport>(&event)) {
      record_.prompt_tokens = report->usage.prompt_tokens;
      record_.completion_tokens = report->usage.completion_tokens;
      observation_.prompt_tokens = report->usage.prompt_tokens;
      observation_.completion_tokens = report->usage.completion_tokens;
    }
  }
}

std::string Conversation::dropped_text() const {
  std::string out = answer_ ? answer_->remote_dropped() : std::string();
  for (const std::string& name : record_.dropped) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

void Conversation::finish(traces::Outcome outcome, std::optional<ErrorCode> error) {
  finished_ = true;
  record_.outcome = outcome;
  record_.error = error;
  record_.milliseconds = milliseconds_since(began_);
  if (outcome == traces::Outcome::refused && clearance_) {
    audit::Record refused{.kind = audit::Kind::refused, .trace = record_.trace};
    refused.policy = clearance_->policy_digest();
    refused.key_id = caller_.key_id();
    refused.label = record_.label;
    refused.outcome = error ? std::string(to_string(*error)) : "refused";
    // Nothing leaves on a refusal, so a log that fails does not change the answer.
    [[maybe_unused]] const auto written = services_.audit.append(refused);
  }
  services_.traces.record(record_);
  observation_.outcome = outcome;
  observation_.error = error;
  observation_.attempts = static_cast<std::uint32_t>(record_.attempts.size());
  observation_.total = Clock::now() - began_;
  if (services_.observe) services_.observe(observation_);
}

}  // namespace molly::pipeline
