#include "core/request.h"

namespace molly {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::system: return "system";
    case Role::developer: return "developer";
    case Role::user: return "user";
    case Role::assistant: return "assistant";
    case Role::tool: return "tool";
    case Role::function: return "function";
    case Role::other: return "other";
  }
  return "other";
}

}  // namespace molly
