#include <format>

#include "base/json_writer.h"
#include "engine/service/api.h"

namespace molly::engine {

std::string adapters_json(const std::vector<AdapterStatus>& adapters) {
  base::JsonWriter json;
  json.begin_object().key("adapters").begin_array();
  for (const AdapterStatus& adapter : adapters) {
    json.begin_object().member("name", adapter.name).member("state", to_string(adapter.state));
    json.member("version", adapter.version).member("rank", adapter.rank).member("bytes", adapter.bytes);
    json.member("pages", adapter.pages).member("users", adapter.users).member("uses", adapter.uses);
    if (!adapter.reason.empty()) json.member("reason", adapter.reason);
    json.end_object();
  }
  return std::move(json.end_array().end_object()).text();
}

namespace {

void metric(std::string& out, std::string_view name, std::string_view kind, std::string_view help, auto value) {
  std::format_to(std::back_inserter(out),
                 "# HELP molly_engine_{0} {2}\n# TYPE molly_engine_{0} {1}\nmolly_engine_{0} {3}\n", name, kind, help,
                 value);
}

template <class Value>
void metric_by_source(std::string& out, std::string_view name, std::string_view help, Value value_of) {
  std::format_to(std::back_inserter(out), "# HELP molly_engine_{0} {1}\n# TYPE molly_engine_{0} counter\n", name, help);
  for (const DraftKind kind : draft_kinds) {
    std::format_to(std::back_inserter(out), "molly_engine_{}{{source=\"{}\"}} {}\n", name, to_string(kind),
                   value_of(kind));
  }
}

}  // namespace

std::string metrics_text(const EngineStatus& status) {
  std::string out;
  const SchedulerCounters& counters = status.counters;
  metric(out, "steps_total", "counter", "forward passes", counters.steps);
  metric(out, "rows_total", "counter", "tokens that went through a forward pass", counters.rows);
  metric(out, "prompt_tokens_total", "counter", "tokens of prompts", counters.prompt_tokens);
  metric(out, "cached_tokens_total", "counter", "tokens of prompts found in the cache", counters.cached_tokens);
  metric(out, "generated_tokens_total", "counter", "generated tokens", counters.generated_tokens);
  metric_by_source(out, "drafted_tokens_total", "drafted tokens",
                   [&](DraftKind kind) { return counters.drafts[kind].drafted; });
  metric_by_source(out, "accepted_tokens_total", "drafted tokens that were right",
                   [&](DraftKind kind) { return counters.drafts[kind].accepted; });
  metric_by_source(out, "draft_seconds_total", "time that drafting took",
                   [&](DraftKind kind) { return std::chrono::duration<double>(counters.draft_time[kind]).count(); });
  metric(out, "preemptions_total", "counter", "sequences set back for want of pages", counters.preemptions);
  metric(out, "finished_total", "counter", "generations that ended well", counters.finished);
  metric(out, "failed_total", "counter", "generations that ended with an error", counters.failed);
  metric(out, "adapter_hits_total", "counter", "adapters wanted while hot", status.adapters.hits);
  metric(out, "adapter_promotions_total", "counter", "adapters copied into the pool", status.adapters.promotions);
  metric(out, "adapter_loads_total", "counter", "adapters read from files", status.adapters.loads);
  metric(out, "adapter_evictions_total", "counter", "adapters taken out of the pool", status.adapters.evictions);
  metric(out, "step_milliseconds", "gauge", "a forward pass of one token", status.step_cost.share(1));
  metric(out, "row_milliseconds", "gauge", "one more token in a forward pass", status.step_cost.per_row());
  metric(out, "running", "gauge", "sequences that run", status.running);
  metric(out, "waiting", "gauge", "sequences that wait", status.waiting);
  metric(out, "pages", "gauge", "pages of the pool", status.pages);
  metric(out, "free_pages", "gauge", "free pages", status.free_pages);
  metric(out, "prefix_pages", "gauge", "pages of cached prefixes", status.prefix_pages);
  metric(out, "adapter_pages", "gauge", "pages of hot adapters", status.adapter_pages);
  metric(out, "page_bytes", "gauge", "bytes of a page", status.page_bytes);
  return out;
}

}  // namespace molly::engine
