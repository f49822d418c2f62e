#include "targets/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/os/processors.h"
#include "base/text.h"

namespace molly::targets {
namespace {

constexpr std::array<std::string_view, 4> tier_names{"T0", "T1", "T2", "T3"};
constexpr std::array<std::string_view, 1> driver_names{"openai"};
constexpr config::Range<std::chrono::milliseconds> deadline_range{std::chrono::milliseconds(1), std::chrono::hours(24)};

bool is_reserved(std::string_view name) {
  return std::ranges::find(automatic_names, name) != std::ranges::end(automatic_names);
}

bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == ':' || c == '/';
  });
}

Modalities read_modalities(config::Section& section) {
  Modalities out;
  const auto names = section.texts("modalities");
  if (!names) return out;
  for (const std::string& name : *names) {
    if (name == "image") {
      out.image = true;
    } else if (name == "audio") {
      out.audio = true;
    } else if (name == "file") {
      out.file = true;
    } else if (name != "text") {
      section.refuse("modalities", "'" + name + "' is not a modality: use text, image, audio or file");
    }
  }
  return out;
}

std::optional<Price> read_price(config::Section& section) {
  config::Section price = section.table("price");
  if (!price.exists()) return std::nullopt;
  constexpr config::Range<double> range{0, 1e6};
  return Price{price_micros(price.number("input", range).value_or(0)),
               price_micros(price.number("output", range).value_or(0))};
}

std::string default_zone(Tier tier) {
  switch (tier) {
    case Tier::t0: return "device";
    case Tier::t1: return "lan";
    case Tier::t2: return "own-remote";
    case Tier::t3: return "external";
  }
  return "external";
}

TargetDescription read_description(config::Section& section) {
  TargetDescription out;
  out.name = section.required_text("name");
  if (!out.name.empty() && !is_good_name(out.name)) {
    section.refuse("name", "a target's name is 1 to 64 letters, digits, '-', '_', '.', ':' or '/'");
  }
  if (is_reserved(out.name))
    section.refuse("name", "'" + out.name + "' means that Molly chooses; name the target otherwise");
  out.driver = section.choice("driver", driver_names).value_or("openai");
  const auto tier = section.choice("tier", tier_names);
  if (!tier && !section.has("tier")) section.refuse("tier", "say where this target runs: T0, T1, T2 or T3");
  out.tier = parse_tier(tier.value_or("T3")).value_or(Tier::t3);
  out.zone = section.text("zone").value_or(default_zone(out.tier));
  out.model = section.text("model").value_or(out.name);
  out.provider = section.text("provider").value_or("");
  if (out.tier == Tier::t3 && out.provider.empty()) {
    section.refuse("provider", "a T3 target needs a provider, so that a grant can name who receives the data");
  }
  out.modalities = read_modalities(section);
  out.tools = section.boolean("tools").value_or(true);
  if (const auto length = section.integer("context_length", {16, 1 << 30})) {
    out.context_length = static_cast<std::uint32_t>(*length);
  }
  out.price = read_price(section);
  return out;
}

TargetSettings read_target(config::Section& section) {
  TargetSettings out;
  out.description = read_description(section);
  out.url = section.required_text("url");
  out.key = section.secret("key");
  out.pin = section.text("pin").value_or("");
  out.counts_tokens = section.boolean("counts_tokens").value_or(false);
  out.is_molly = section.boolean("molly").value_or(false);
  out.concurrency = static_cast<std::uint32_t>(section.integer("concurrency", {1, 100'000}).value_or(64));
  out.connect_deadline = section.duration("connect_seconds", deadline_range).value_or(out.connect_deadline);
  out.first_byte_deadline = section.duration("first_byte_seconds", deadline_range).value_or(out.first_byte_deadline);
  out.idle_deadline = section.duration("idle_seconds", deadline_range).value_or(out.idle_deadline);
  return out;
}

}  // namespace

std::int64_t price_micros(double per_million) { return std::llround(per_million * 1e6); }

std::vector<TargetSettings> read_targets(config::Section root) {
  std::vector<TargetSettings> out;
  std::set<std::string> seen;
  for (config::Section& section : root.tables("target")) {
    out.push_back(read_target(section));
    const std::string& name = out.back().description.name;
    if (!name.empty() && !seen.insert(name).second) section.refuse("name", "two targets are named '" + name + "'");
  }
  return out;
}

ModelRuntime read_runtime(config::Section& section) {
  const auto name = section.text("runtime");
  if (!name || *name == "auto") return ModelRuntime::automatic;
  if (*name == "llama-server") return ModelRuntime::llama_server;
  if (*name != "molly-engine") {
    section.refuse("runtime", "'" + *name + "' is no runtime: use auto, molly-engine or llama-server");
  }
  return ModelRuntime::molly_engine;
}

std::string read_cpus(config::Section& section) {
  auto list = section.text("cpus");
  if (!list) return {};
  if (const auto chosen = base::choose_processors(*list); !chosen) section.refuse("cpus", chosen.error().message);
  return std::move(*list);
}

ModelSettings read_models(config::Section root) {
  ModelSettings out;
  config::Section section = root.table("models");
  out.memory = section.bytes("memory");
  out.keep_alive = section.duration("keep_alive").value_or(out.keep_alive);
  if (const auto server = section.text("server")) out.server = *server;
  if (const auto engine = section.text("engine")) out.engine = *engine;
  out.runtime = read_runtime(section);
  out.threads = static_cast<std::uint32_t>(section.integer("threads", {1, 1024}).value_or(0));
  out.parallel = static_cast<std::uint32_t>(section.integer("parallel", {1, 256}).value_or(0));
  out.context = static_cast<std::uint32_t>(section.integer("context", {16, 1 << 30}).value_or(0));
  out.cpus = read_cpus(section);
  return out;
}

std::map<std::string, std::vector<std::string>> read_aliases(config::Section root,
                                                             const std::vector<std::string>& known) {
  std::map<std::string, std::vector<std::string>> out;
  config::Section section = root.table("aliases");
  for (const std::string& alias : section.keys()) {
    const auto names = section.texts(alias);
    if (!names) continue;
    if (is_reserved(alias)) section.refuse(alias, "'" + alias + "' means that Molly chooses; name the alias otherwise");
    if (std::ranges::contains(known, alias)) section.refuse(alias, "a target is named '" + alias + "' already");
    if (names->empty()) section.refuse(alias, "an alias needs at least one target");
    for (const std::string& name : *names) {
      if (std::ranges::contains(known, name)) continue;
      const auto meant = base::nearest(name, known);
      section.refuse(alias, "there is no target '" + name + "'" + (meant ? "; did you mean '" + *meant + "'?" : ""));
    }
    out.emplace(alias, *names);
  }
  return out;
}

}  // namespace molly::targets
