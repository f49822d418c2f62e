#include "core/target.h"

namespace molly {

std::string_view to_string(Health health) {
  switch (health) {
    case Health::ready: return "ready";
    case Health::cold: return "cold";
    case Health::busy: return "busy";
    case Health::failing: return "failing";
  }
  return "failing";
}

}  // namespace molly
