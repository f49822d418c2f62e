#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "config/section.h"
#include "core/target.h"

namespace molly::targets {

// One [[target]] of molly.toml.
//
//   name, driver = "openai", tier, zone, url, key, model, pin, provider, molly, modalities, tools,
//   context_length, counts_tokens, price = { input, output }, concurrency, connect_seconds, first_byte_seconds,
//   idle_seconds
struct TargetSettings {
  TargetDescription description;
  std::string url;                  // http://..., https://... or unix:/path[:/base]
  std::optional<base::Secret> key;  // sent as a bearer token
  std::string pin;                  // "sha256//BASE64" of the server's public key, or empty
  bool counts_tokens = false;       // a llama-server: can be asked how many tokens a prompt has
  bool is_molly = false;            // receives the clearance of each request
  std::uint32_t concurrency = 64;   // requests at a time
  std::chrono::milliseconds connect_deadline{5'000};
  std::chrono::milliseconds first_byte_deadline{120'000};
  std::chrono::milliseconds idle_deadline{60'000};
  bool operator==(const TargetSettings&) const = default;
};

// [models] runtime: which program serves the models.
enum class ModelRuntime : std::uint8_t {
  automatic,  // molly-engine where it can do all that llama-server can for the model, else llama-server
  llama_server,
  molly_engine,  // a model that it cannot serve is an error
};

// [models]: the model processes that Molly starts itself.
struct ModelSettings {
  std::optional<std::uint64_t> memory;  // bytes for all of them together; absent: 70 % of what is available
  std::chrono::milliseconds keep_alive{std::chrono::minutes(10)};
  std::filesystem::path server = "llama-server";  // found in PATH when it has no slash
  ModelRuntime runtime = ModelRuntime::automatic;
  std::filesystem::path engine = "molly-engine";  // beside this program, or found in PATH, when it has no slash
  std::uint32_t threads = 0;                      // per process; 0: one for each core, or for each of `cpus`
  std::uint32_t parallel = 0;                     // requests at a time per process; 0: 4, fewer where memory is short
  std::uint32_t context = 0;                      // tokens per request; 0: what the model was made for, at most 8,192
  std::string cpus;                               // processors that may be used, "0,2-3"; empty: all
};

// Names of the built-in ways to ask: never a target or an alias.
inline constexpr std::string_view automatic_names[] = {"auto", "molly"};

// Problems are reported on the sections; what is returned is only good when the document has none.
std::vector<TargetSettings> read_targets(config::Section root);
ModelSettings read_models(config::Section root);
// [aliases]: name = "target" or name = ["target", "target"], in order of preference. `known` are all target names.
std::map<std::string, std::vector<std::string>> read_aliases(config::Section root,
                                                             const std::vector<std::string>& known);

// 1.25 (currency per million tokens) as micros.
std::int64_t price_micros(double per_million);

}  // namespace molly::targets
