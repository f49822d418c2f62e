#include "base/json_writer.h"
#include "base/text.h"
#include "traces/record.h"

namespace molly::traces {
namespace {

std::string target_name(const DecisionRecord& record, std::uint16_t target) {
  const auto& targets = record.catalogue->targets;
  // Only where the catalogue's own record was lost with its segment.
  if (target >= targets.size()) return "target " + std::to_string(target + 1);
  return targets[target].name;
}

std::string_view target_tier(const DecisionRecord& record, std::uint16_t target) {
  const auto& targets = record.catalogue->targets;
  return target < targets.size() ? to_string(targets[target].tier) : "?";
}

std::string_view rule_text(const DecisionRecord& record, std::uint16_t rule) {
  const auto& rules = record.catalogue->rules;
  return rule < rules.size() ? std::string_view(rules[rule]) : std::string_view();
}

std::string_view to_string(EndpointKind endpoint) {
  switch (endpoint) {
    case EndpointKind::chat: return "chat";
    case EndpointKind::completions: return "completions";
    case EndpointKind::other: break;
  }
  return "other";
}

std::vector<std::string_view> modality_names(const Modalities& modalities) {
  std::vector<std::string_view> out;
  if (modalities.text) out.push_back("text");
  if (modalities.image) out.push_back("image");
  if (modalities.audio) out.push_back("audio");
  if (modalities.file) out.push_back("file");
  return out;
}

template <class Value>
void optional_member(base::JsonWriter& json, std::string_view name, const std::optional<Value>& value) {
  if (value) json.member(name, *value);
}

void write_profiles(base::JsonWriter& json, const DecisionRecord& record) {
  json.key("capability").begin_object().key("modalities").begin_array();
  for (const auto name : modality_names(record.modalities)) json.value(name);
  json.end_array().member("token_upper_bound", record.token_upper_bound);
  optional_member(json, "exact_tokens", record.exact_tokens);
  json.member("tools", record.needs_tools).member("structured", record.structured).end_object();
  json.key("sovereignty").begin_object().member("label", record.label);
  json.member("max_tier", molly::to_string(record.max_tier)).end_object();
  json.member("policy", hex(record.catalogue->policy));
}

void write_targets(base::JsonWriter& json, const DecisionRecord& record) {
  json.key("targets").begin_array();
  for (const TargetDecision& decision : record.targets) {
    json.begin_object().member("target", target_name(record, decision.target));
    json.member("tier", target_tier(record, decision.target)).member("verdict", to_string(decision.verdict));
    json.member("why", to_sentence(decision.verdict));
    if (const auto rule = rule_text(record, decision.rule); !rule.empty()) json.member("rule", rule);
    json.end_object();
  }
  json.end_array();
}

void write_way(base::JsonWriter& json, const DecisionRecord& record) {
  json.key("route").begin_array();
  for (const RouteStep& step : record.route) {
    json.begin_object().member("target", target_name(record, step.target)).member("why", to_sentence(step.reason));
    json.end_object();
  }
  json.end_array().key("attempts").begin_array();
  for (const Attempt& attempt : record.attempts) {
    json.begin_object().member("target", target_name(record, attempt.target));
    json.member("outcome", to_string(attempt.outcome)).member("milliseconds", attempt.milliseconds);
    if (attempt.http_status != 0) json.member("http_status", attempt.http_status);
    json.end_object();
  }
  json.end_array();
  if (record.final_target == no_target) return;
  json.key("final").begin_object().member("target", target_name(record, record.final_target));
  json.member("tier", target_tier(record, record.final_target)).end_object();
}

void line(std::string& out, std::string_view name, std::string_view content) {
  constexpr std::size_t width = 11;
  out += name;
  out.append(width - name.size(), ' ');
  out += content;
  out += '\n';
}

std::string joined(const auto& parts) {
  std::string out;
  for (const auto& part : parts) {
    if (!out.empty()) out += ", ";
    out += part;
  }
  return out;
}

std::string headline(const DecisionRecord& record) {
  std::string out = record.trace.text() + "  " + base::iso_time(record.time) + "  " +
                    std::string(to_string(record.outcome)) + " after " +
                    base::human_duration(std::chrono::milliseconds(record.milliseconds));
  if (record.final_target == no_target) return out;
  return out + " by " + target_name(record, record.final_target) + " (" +
         std::string(target_tier(record, record.final_target)) + ")";
}

std::string asked(const DecisionRecord& record) {
  return std::string(to_string(record.endpoint)) + (record.stream ? ", streamed" : "") + ", model " +
         base::json_string(record.model.empty() ? "auto" : record.model);
}

std::string asker(const DecisionRecord& record) {
  std::string out = record.member.empty() ? "somebody on this device without a key" : record.member;
  if (!record.key_id.empty()) out += " (key " + record.key_id + ")";
  if (!record.application.empty()) out += ", application " + base::json_string(record.application);
  return out;
}

std::string needs(const DecisionRecord& record) {
  std::string out =
      joined(modality_names(record.modalities)) + "; at most " + std::to_string(record.token_upper_bound) + " tokens";
  if (record.exact_tokens) out += " (counted: " + std::to_string(*record.exact_tokens) + ")";
  if (record.needs_tools) out += "; tools";
  if (record.structured) out += "; structured output";
  return out;
}

void write_target_lines(std::string& out, const DecisionRecord& record) {
  out += "targets\n";
  for (const TargetDecision& decision : record.targets) {
    const bool cleared = decision.verdict == Verdict::cleared;
    out += std::string(cleared ? "  + " : "  - ") + target_name(record, decision.target) + " (" +
           std::string(target_tier(record, decision.target)) + "): " + std::string(to_sentence(decision.verdict));
    if (const auto rule = rule_text(record, decision.rule); !rule.empty()) out += " [" + std::string(rule) + "]";
    out += '\n';
  }
}

void write_way_lines(std::string& out, const DecisionRecord& record) {
  if (!record.route.empty()) out += "route\n";
  for (std::size_t i = 0; i < record.route.size(); ++i) {
    const RouteStep& step = record.route[i];
    out += "  " + std::to_string(i + 1) + ". " + target_name(record, step.target) + ": " +
           std::string(to_sentence(step.reason)) + "\n";
  }
  if (!record.attempts.empty()) out += "attempts\n";
  for (const Attempt& attempt : record.attempts) {
    std::string outcome(to_string(attempt.outcome));
    std::ranges::replace(outcome, '_', ' ');
    out += "  " + target_name(record, attempt.target) + ": " + outcome + " after " +
           base::human_duration(std::chrono::milliseconds(attempt.milliseconds));
    if (attempt.http_status != 0) out += " (HTTP " + std::to_string(attempt.http_status) + ")";
    out += '\n';
  }
}

}  // namespace

std::string to_json(const DecisionRecord& record) {
  base::JsonWriter json;
  json.begin_object().member("trace", record.trace.text()).member("time", base::iso_time(record.time));
  json.member("milliseconds", record.milliseconds).member("outcome", to_string(record.outcome));
  if (record.error) json.member("error", molly::to_string(*record.error));
  json.member("member", record.member).member("key", record.key_id).member("application", record.application);
  json.member("endpoint", to_string(record.endpoint)).member("stream", record.stream).member("model", record.model);
  write_profiles(json, record);
  write_targets(json, record);
  write_way(json, record);
  if (record.prompt_tokens || record.completion_tokens) {
    json.key("usage").begin_object();
    optional_member(json, "prompt_tokens", record.prompt_tokens);
    optional_member(json, "completion_tokens", record.completion_tokens);
    json.end_object();
  }
  json.key("dropped").begin_array();
  for (const std::string& name : record.dropped) json.value(name);
  return std::move(json.end_array().end_object()).text();
}

std::string to_text(const DecisionRecord& record) {
  std::string out = headline(record) + "\n";
  line(out, "asked", asked(record));
  line(out, "by", asker(record));
  line(out, "needs", needs(record));
  line(out, "may", record.label + "; at most " + std::string(molly::to_string(record.max_tier)));
  line(out, "policy", hex(record.catalogue->policy).substr(0, 16));
  write_target_lines(out, record);
  write_way_lines(out, record);
  if (record.prompt_tokens || record.completion_tokens) {
    line(out, "usage",
         std::to_string(record.prompt_tokens.value_or(0)) + " tokens in, " +
             std::to_string(record.completion_tokens.value_or(0)) + " out");
  }
  if (!record.dropped.empty()) line(out, "dropped", joined(record.dropped));
  if (record.error) line(out, "error", molly::to_string(*record.error));
  return out;
}

}  // namespace molly::traces
