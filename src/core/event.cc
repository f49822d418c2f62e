#include "core/event.h"

namespace molly {

bool commits(const Event& event) {
  const auto* delta = std::get_if<ChoiceDelta>(&event);
  if (delta == nullptr) return false;
  const auto has = [](const std::optional<std::string>& text) { return text && !text->empty(); };
  return has(delta->text) || has(delta->reasoning) || has(delta->refusal) || !delta->tool_calls.empty() ||
         delta->finish.has_value();
}

}  // namespace molly
