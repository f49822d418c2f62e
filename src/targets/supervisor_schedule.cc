#include "targets/supervisor_schedule.h"

#include <algorithm>

namespace molly::targets {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t max_models = 256;
constexpr milliseconds busy_retry{1'000};

std::string in_seconds(milliseconds duration) { return std::to_string(duration.count() / 1000) + " s"; }

bool holds_memory(ModelState state) {
  return state == ModelState::starting || state == ModelState::ready || state == ModelState::draining;
}

}  // namespace

std::string_view to_string(ModelState state) {
  switch (state) {
    case ModelState::stopped: return "stopped";
    case ModelState::starting: return "starting";
    case ModelState::ready: return "ready";
    case ModelState::draining: return "draining";
    case ModelState::failed: return "failed";
  }
  return "failed";
}

Result<void> ModelSchedule::add(const std::string& name, std::uint64_t bytes, std::uint32_t slots) {
  if (bytes > options_.memory_budget) {
    return failure(ErrorCode::invalid_request,
                   "the model " + name + " needs about " + std::to_string(bytes >> 20) + " MiB, more than the " +
                       std::to_string(options_.memory_budget >> 20) +
                       " MiB that models may use: raise models.memory, or use a shorter context or a smaller file",
                   "models.memory");
  }
  if (!models_.contains(name) && models_.size() >= max_models) {
    return failure(ErrorCode::invalid_request, "there are " + std::to_string(max_models) + " models already");
  }
  Model& model = models_[name];
  model.bytes = bytes;
  model.slots = std::max(slots, 1U);
  model.removed = false;
  return {};
}

void ModelSchedule::remove(std::string_view name, TimePoint now) {
  const auto found = models_.find(name);
  if (found == models_.end()) return;
  Model& model = found->second;
  fail_tickets(model, {ErrorCode::not_found, "the model " + found->first + " was removed", "model"});
  model.removed = true;
  model.load_since.reset();
  if (holds_memory(model.state)) return begin_drain(model, "removed", now + options_.drain_limit);
  models_.erase(found);
}

Result<TicketId> ModelSchedule::request(std::string_view name, TimePoint now) {
  const auto found = models_.find(name);
  if (found == models_.end() || found->second.removed) {
    return failure(ErrorCode::not_found, "there is no model named " + std::string(name), "model");
  }
  Model& model = found->second;
  if (closed_) return failure(ErrorCode::unavailable, "Molly is stopping");
  if (model.state == ModelState::failed && now < model.retry_at) {
    auto refused =
        Error{ErrorCode::unavailable, "the model " + found->first + " is out of service: " + model.reason, {}};
    refused.retry_after = std::chrono::ceil<milliseconds>(model.retry_at - now);
    return std::unexpected(std::move(refused));
  }
  if (waiting_ >= options_.max_waiting) {
    auto refused = Error{ErrorCode::overloaded, "too many requests wait for local models", {}};
    refused.retry_after = busy_retry;
    return std::unexpected(std::move(refused));
  }
  model.tickets.push_back({++last_ticket_, now});
  ++waiting_;
  return last_ticket_;
}

void ModelSchedule::cancel(TicketId ticket) {
  for (auto& [name, model] : models_) {
    const auto found = std::ranges::find(model.tickets, ticket, &Ticket::id);
    if (found == model.tickets.end()) continue;
    model.tickets.erase(found);
    --waiting_;
    return;
  }
}

void ModelSchedule::release(std::string_view name, Generation generation, TimePoint now) {
  Model* model = running(name, generation);
  if (model == nullptr || model->leases == 0) return;
  --model->leases;
  model->last_used = now;
}

Result<void> ModelSchedule::load(std::string_view name, TimePoint now) {
  const auto found = models_.find(name);
  if (found == models_.end() || found->second.removed) {
    return failure(ErrorCode::not_found, "there is no model named " + std::string(name), "model");
  }
  Model& model = found->second;
  if (model.state == ModelState::failed) {
    model.state = ModelState::stopped;
    model.attempts = 0;
  }
  if (model.state == ModelState::ready) {
    model.last_used = now;
  } else if (model.state != ModelState::starting) {
    model.load_since = now;
  }
  return {};
}

Result<void> ModelSchedule::unload(std::string_view name, std::string reason, TimePoint now) {
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return failure(ErrorCode::not_found, "there is no model named " + std::string(name), "model");
  }
  Model& model = found->second;
  model.load_since.reset();
  if (holds_memory(model.state)) begin_drain(model, std::move(reason), now + options_.drain_limit);
  return {};
}

std::optional<Generation> ModelSchedule::adopt(std::string_view name, TimePoint protected_until) {
  const auto found = models_.find(name);
  if (found == models_.end() || found->second.removed || holds_memory(found->second.state)) return std::nullopt;
  Model& model = found->second;
  model.state = ModelState::starting;
  model.reason = "taken over from the control plane before";
  model.generation = ++last_generation_;
  model.held_bytes = model.bytes;
  model.protected_until = protected_until;
  return model.generation;
}

void ModelSchedule::child_ready(std::string_view name, Generation generation, TimePoint now) {
  Model* model = running(name, generation);
  if (model == nullptr || model->state != ModelState::starting) return;
  model->state = ModelState::ready;
  model->reason.clear();
  model->ready_since = now;
  model->last_used = now;
}

void ModelSchedule::child_gone(std::string_view name, Generation generation, const std::string& reason, TimePoint now) {
  Model* model = running(name, generation);
  if (model == nullptr) return;
  const bool was_draining = model->state == ModelState::draining;
  if (was_draining) {
    model->state = ModelState::stopped;
  } else {
    fail(*model, reason, now);
  }
  model->generation = 0;
  model->held_bytes = 0;
  model->leases = 0;
  model->granted = 0;
  model->stop_sent = false;
  model->drain_deadline.reset();
  model->protected_until = {};
  if (model->removed) models_.erase(models_.find(name));
}

void ModelSchedule::fail(Model& model, const std::string& reason, TimePoint now) {
  const bool served = model.state == ModelState::ready;
  if (served && now - model.ready_since >= options_.stable_after) model.attempts = 0;
  ++model.attempts;
  model.state = ModelState::failed;
  model.reason = reason;
  model.retry_at = now + backoff(model.attempts);
  model.load_since.reset();
  // A first crash while serving is mended at once, so those who wait go on waiting; whoever waits for a model that
  // does not come up is told now, and can be answered by another target.
  if (served && model.attempts == 1) return;
  Error error{ErrorCode::unavailable, "a local model did not start: " + reason, {}};
  error.retry_after = std::max(backoff(model.attempts), busy_retry);
  fail_tickets(model, error);
}

milliseconds ModelSchedule::backoff(std::uint32_t attempts) const {
  if (attempts <= 1) return milliseconds(0);
  const auto doubled = options_.first_backoff * (std::int64_t{1} << std::min(attempts - 2, 20U));
  return std::min<milliseconds>(doubled, options_.max_backoff);
}

void ModelSchedule::close() {
  closed_ = true;
  for (auto& [name, model] : models_) {
    fail_tickets(model, {ErrorCode::unavailable, "Molly is stopping", {}});
    model.load_since.reset();
  }
}

std::vector<Action> ModelSchedule::decide(TimePoint now) {
  if (!closed_) {
    grant_waiting(now);
    drain_idle(now);
    start_wanted(now);
    stop_drained(now);
  }
  return std::exchange(actions_, {});
}

void ModelSchedule::grant_waiting(TimePoint now) {
  for (auto& [name, model] : models_) {
    if (model.state != ModelState::ready) continue;
    while (!model.tickets.empty() && model.leases < model.slots) {
      actions_.push_back(GrantTicket{model.tickets.front().id, name, model.generation});
      model.tickets.pop_front();
      --waiting_;
      ++model.leases;
      ++model.granted;
      model.last_used = now;
    }
  }
}

void ModelSchedule::drain_idle(TimePoint now) {
  if (options_.keep_alive == milliseconds::max()) return;
  for (auto& [name, model] : models_) {
    const bool idle = model.state == ModelState::ready && model.leases == 0 && model.tickets.empty();
    if (!idle || now < model.last_used + options_.keep_alive || now < model.protected_until) continue;
    begin_drain(model, "idle for " + in_seconds(options_.keep_alive), std::nullopt);
  }
}

// The oldest request's model goes first. What is still being made free for it is not given to a later one.
void ModelSchedule::start_wanted(TimePoint now) {
  std::vector<std::pair<TimePoint, Models::value_type*>> wanted;
  for (auto& entry : models_) {
    const auto since = wanted_since(entry.second);
    if (since && may_start(entry.second, now)) wanted.emplace_back(*since, &entry);
  }
  std::ranges::sort(wanted, {}, [](const auto& item) { return item.first; });
  std::uint64_t reserved = 0;
  for (auto& [since, entry] : wanted) {
    auto& [name, model] = *entry;
    if (memory_used() + reserved + model.bytes > options_.memory_budget) {
      make_room(model, reserved, now);
      reserved += model.bytes;
      continue;
    }
    model.state = ModelState::starting;
    model.reason.clear();
    model.generation = ++last_generation_;
    model.held_bytes = model.bytes;
    model.load_since.reset();
    actions_.push_back(StartModel{name, model.generation});
  }
}

// Drains just enough loaded models. Nothing is drained when even all that may be would not do.
void ModelSchedule::make_room(const Model& wanted, std::uint64_t reserved, TimePoint now) {
  std::uint64_t staying = 0;
  for (const auto& [name, model] : models_) {
    if (model.state != ModelState::draining) staying += model.held_bytes;
  }
  const std::uint64_t needed = wanted.bytes + reserved;
  if (staying + needed <= options_.memory_budget) return;  // enough is on its way
  std::vector<Model*> chosen;
  for (Model* victim : victims(*wanted_since(wanted), now)) {
    if (staying + needed <= options_.memory_budget) break;
    staying -= victim->held_bytes;
    chosen.push_back(victim);
  }
  if (staying + needed > options_.memory_budget) return;
  for (Model* victim : chosen) {
    if (staying + needed + victim->held_bytes <= options_.memory_budget) {
      staying += victim->held_bytes;  // another one already frees enough: this one can stay
      continue;
    }
    begin_drain(*victim, "making room for another model", std::nullopt);
  }
}

// Idle ones first, the longest unused before others; then busy ones that have had their turn.
std::vector<ModelSchedule::Model*> ModelSchedule::victims(TimePoint wanted_since_time, TimePoint now) {
  std::vector<Model*> result;
  for (auto& [name, model] : models_) {
    if (may_evict(model, wanted_since_time, now)) result.push_back(&model);
  }
  std::ranges::sort(result, {}, [](const Model* model) { return std::pair(model->leases > 0, model->last_used); });
  return result;
}

bool ModelSchedule::may_evict(const Model& model, TimePoint wanted_since_time, TimePoint now) const {
  if (model.state != ModelState::ready || now < model.protected_until) return false;
  if (model.leases == 0 && model.tickets.empty()) return true;
  const TimePoint blocking_since = std::max(model.ready_since, wanted_since_time);
  return now - blocking_since >= options_.patience || model.granted >= options_.burst;
}

void ModelSchedule::stop_drained(TimePoint now) {
  for (auto& [name, model] : models_) {
    if (model.state != ModelState::draining || model.stop_sent) continue;
    const bool overdue = model.drain_deadline && now >= *model.drain_deadline;
    if (model.leases > 0 && !overdue) continue;
    model.stop_sent = true;
    actions_.push_back(StopModel{name, model.generation});
  }
}

std::optional<TimePoint> ModelSchedule::next_decision(TimePoint now) const {
  std::optional<TimePoint> next;
  const auto consider = [&](TimePoint time) {
    if (time > now && (!next || time < *next)) next = time;
  };
  if (closed_) return next;
  for (const auto& [name, model] : models_) {
    if (model.state == ModelState::ready) {
      consider(model.protected_until);
      if (options_.keep_alive != milliseconds::max()) consider(model.last_used + options_.keep_alive);
    }
    if (model.state == ModelState::draining && model.drain_deadline && !model.stop_sent)
      consider(*model.drain_deadline);
    const auto since = wanted_since(model);
    if (!since) continue;
    if (model.state == ModelState::failed) consider(model.retry_at);
    if (holds_memory(model.state)) continue;
    for (const auto& [other_name, other] : models_) {
      if (other.state == ModelState::ready) consider(std::max(other.ready_since, *since) + options_.patience);
    }
  }
  return next;
}

ModelView ModelSchedule::view_of(const std::string& name, const Model& model) {
  ModelView view{.name = name,
                 .state = model.state,
                 .reason = model.reason,
                 .generation = model.generation,
                 .attempts = model.attempts,
                 .bytes = model.bytes,
                 .leases = model.leases,
                 .waiting = static_cast<std::uint32_t>(model.tickets.size())};
  if (model.state == ModelState::failed) view.retry_at = model.retry_at;
  return view;
}

std::vector<ModelView> ModelSchedule::view() const {
  std::vector<ModelView> views;
  for (const auto& [name, model] : models_) {
    if (!model.removed || holds_memory(model.state)) views.push_back(view_of(name, model));
  }
  return views;
}

std::optional<ModelView> ModelSchedule::view(std::string_view name) const {
  const auto found = models_.find(name);
  if (found == models_.end()) return std::nullopt;
  return view_of(found->first, found->second);
}

std::uint64_t ModelSchedule::memory_used() const {
  std::uint64_t sum = 0;
  for (const auto& [name, model] : models_) sum += model.held_bytes;
  return sum;
}

ModelSchedule::Model* ModelSchedule::running(std::string_view name, Generation generation) {
  const auto found = models_.find(name);
  if (found == models_.end() || found->second.generation != generation || generation == 0) return nullptr;
  return &found->second;
}

bool ModelSchedule::may_start(const Model& model, TimePoint now) const {
  if (model.removed) return false;
  return model.state == ModelState::stopped || (model.state == ModelState::failed && now >= model.retry_at);
}

std::optional<TimePoint> ModelSchedule::wanted_since(const Model& model) const {
  std::optional<TimePoint> since = model.load_since;
  if (!model.tickets.empty()) since = std::min(since.value_or(TimePoint::max()), model.tickets.front().since);
  return since;
}

void ModelSchedule::begin_drain(Model& model, std::string reason, std::optional<TimePoint> deadline) {
  if (model.state == ModelState::draining) {
    // An order to stop by a time outranks a patient one.
    if (deadline && (!model.drain_deadline || *deadline < *model.drain_deadline)) model.drain_deadline = deadline;
    return;
  }
  model.state = ModelState::draining;
  model.reason = std::move(reason);
  model.drain_deadline = deadline;
}

void ModelSchedule::fail_tickets(Model& model, const Error& error) {
  for (const auto& ticket : model.tickets) actions_.push_back(FailTicket{ticket.id, error});
  waiting_ -= static_cast<std::uint32_t>(model.tickets.size());
  model.tickets.clear();
}

}  // namespace molly::targets
