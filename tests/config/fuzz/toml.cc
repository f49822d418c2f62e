// Any bytes as a configuration file, read with one key of each type. Nothing may crash, and what is wrong
// must have a sentence.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/section.h"

namespace {

using molly::config::Section;

void read_target(Section target) {
  constexpr std::array<std::string_view, 4> tiers{"T0", "T1", "T2", "T3"};
  target.required_text("name");
  target.choice("tier", tiers);
  target.secret("key");
  target.texts("modalities");
  target.boolean("tools");
  target.integer("context_length", {1, 1 << 30});
  target.table("price").number("input", {0, 1e9});
  target.duration("idle_seconds");
}

void read_all(Section root) {
  auto server = root.table("server");
  server.texts("listen");
  server.bytes("max_body_bytes");
  server.duration("keep_alive");
  for (auto& target : root.tables("target")) read_target(target);
  for (auto& grant : root.tables("grant")) grant.date("expires");
  auto aliases = root.table("aliases");
  for (const auto& name : aliases.keys()) aliases.text(name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Files that the input names are none of our business, and may be pipes that never answer.
  if (text.contains("file:")) return 0;
  auto document = molly::config::Document::parse(text, "molly.toml");
  read_all(document.root());
  const auto verdict = document.finish();
  if (!verdict && verdict.error().message.empty()) std::abort();
  if (verdict && !document.problems().empty()) std::abort();
  return 0;
}
