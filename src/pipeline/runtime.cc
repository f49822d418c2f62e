#include "pipeline/runtime.h"

#include <algorithm>

#include "base/text.h"
#include "targets/settings.h"

namespace molly::pipeline {
namespace {

bool is_automatic(std::string_view model) {
  return model.empty() ||
         std::ranges::find(targets::automatic_names, model) != std::ranges::end(targets::automatic_names);
}

Error unknown_model(const Runtime& runtime, std::string_view model) {
  std::vector<std::string> known{"auto"};
  for (const auto& target : runtime.targets) known.push_back(target->description().name);
  for (const auto& [alias, names] : runtime.aliases) known.push_back(alias);
  const auto meant = base::nearest(model, known);
  std::string message = "there is no model '" + std::string(model.substr(0, 100)) + "'";
  message += meant ? "; did you mean '" + *meant + "'?"
                   : "; GET /v1/models lists those that there are, and 'auto' lets Molly choose";
  return {ErrorCode::not_found, std::move(message), "model"};
}

}  // namespace

Result<routing::Selection> select(const Runtime& runtime, std::string_view model) {
  if (is_automatic(model)) return routing::Selection{};
  if (const auto alias = runtime.aliases.find(model); alias != runtime.aliases.end()) {
    return routing::Selection{.automatic = false, .names = alias->second};
  }
  const bool known =
      std::ranges::any_of(runtime.targets, [&](const auto& t) { return t->description().name == model; });
  if (!known) return std::unexpected(unknown_model(runtime, model));
  return routing::Selection{.automatic = false, .names = {std::string(model)}};
}

}  // namespace molly::pipeline
