#include "training/job_event.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "base/json_writer.h"
#include "wire/json_reader.h"

namespace molly::training {
namespace {

using wire::JsonReader;

// Each kind's name and members, for writer and reader alike.
template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobStarted>
{
  visit("steps", event.steps);
  visit("first_step", event.first_step);
  visit("memory_bytes", event.memory_bytes);
  visit("train_examples", event.train_examples);
  visit("held_out_examples", event.held_out_examples);
}

template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobStep>
{
  visit("step", event.step);
  visit("steps", event.steps);
  visit("loss", event.loss);
  visit("rate", event.rate);
  visit("tokens_per_second", event.tokens_per_second);
  visit("seconds_left", event.seconds_left);
}

template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobHeldOut>
{
  visit("step", event.step);
  visit("loss", event.loss);
}

template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobCheckpoint>
{
  visit("step", event.step);
  visit("path", event.path);
}

template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobWarning>
{
  visit("message", event.message);
}

template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobFinished>
{
  visit("adapter", event.adapter);
  visit("manifest", event.manifest);
  visit("metrics", event.metrics);
}

template <class Visit>
void members(auto& event, Visit&& visit)
  requires std::same_as<std::remove_cvref_t<decltype(event)>, JobFailed>
{
  visit("code", event.code);
  visit("message", event.message);
}

// In the order of JobEvent.
constexpr std::string_view kinds[] = {"started", "step", "held_out", "checkpoint", "warning", "finished", "failed"};

using Metrics = std::vector<std::pair<std::string, double>>;

void write(base::JsonWriter& json, const Metrics& metrics) {
  json.begin_object();
  for (const auto& [name, value] : metrics) json.member(name, value);
  json.end_object();
}

void write(base::JsonWriter& json, const auto& value) { json.value(value); }

void read(JsonReader& in, std::uint64_t& into) { into = in.unsigned_integer(); }
void read(JsonReader& in, double& into) {
  if (!in.at_null()) return void(into = in.number().value);
  into = std::nan("");  // what JSON has no number for: a loss that is infinite or not a number
  in.skip();
}
void read(JsonReader& in, std::string& into) { into = in.string(); }
void read(JsonReader& in, Metrics& into) {
  in.object([&](std::string_view name) { read(in, into.emplace_back(std::string(name), 0).second); });
}

template <class Event>
JobEvent read_event(JsonReader& in) {
  Event event;
  std::vector<std::string> seen;
  in.object([&](std::string_view key) {
    bool known = false;
    members(event, [&](std::string_view name, auto& value) {
      if (name != key) return;
      known = true;
      if (std::ranges::contains(seen, key)) return in.fail("is given twice");
      seen.emplace_back(key);
      read(in, value);
    });
    if (!known) in.skip();
  });
  members(event, [&](std::string_view name, auto&) {
    if (in.ok() && !std::ranges::contains(seen, name)) in.fail_member(name, "is required");
  });
  return event;
}

std::optional<JobEvent> read_kind(JsonReader& in, std::string_view kind) {
  if (kind == "started") return read_event<JobStarted>(in);
  if (kind == "step") return read_event<JobStep>(in);
  if (kind == "held_out") return read_event<JobHeldOut>(in);
  if (kind == "checkpoint") return read_event<JobCheckpoint>(in);
  if (kind == "warning") return read_event<JobWarning>(in);
  if (kind == "finished") return read_event<JobFinished>(in);
  if (kind == "failed") return read_event<JobFailed>(in);
  in.skip();
  return std::nullopt;
}

}  // namespace

std::string job_event_json(const JobEvent& event) {
  base::JsonWriter json;
  json.begin_object().member("event", kinds[event.index()]);
  std::visit(
      [&](const auto& one) {
        members(one, [&](std::string_view name, const auto& value) {
          json.key(name);
          write(json, value);
        });
      },
      event);
  return std::move(json.end_object()).text();
}

Result<std::optional<JobEvent>> parse_job_event(std::string_view line) {
  JsonReader in(line);
  std::optional<JobEvent> event;
  const auto kind = in.peek() == JsonReader::Kind::object ? in.peek_string_member("event") : std::nullopt;
  if (kind) {
    event = read_kind(in, *kind);
    in.expect_end();
  } else if (in.ok()) {
    in.fail("is no event: it has no member 'event'");
  }
  if (in.ok()) return event;
  const std::string where = in.path().empty() ? "the line" : in.path();
  return failure(ErrorCode::upstream_failed, "the trainer's output is wrong: " + where + " " + in.problem(), where);
}

}  // namespace molly::training
