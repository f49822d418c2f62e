#include "engine/model/accelerators.h"

#include <optional>
#include <string_view>

namespace molly::engine {
namespace {

std::optional<std::string_view> kind_of(const ggml_backend_dev_props& device) {
  switch (device.type) {
    case GGML_BACKEND_DEVICE_TYPE_GPU: return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU: return "integrated gpu";
    case GGML_BACKEND_DEVICE_TYPE_ACCEL: return "accelerator";
    default: return std::nullopt;  // the processor itself
  }
}

}  // namespace

std::vector<sizing::Accelerator> accelerators(const Backend&) {
  std::vector<sizing::Accelerator> out;
  for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_props properties{};
    ggml_backend_dev_get_props(ggml_backend_dev_get(i), &properties);
    const auto kind = kind_of(properties);
    if (!kind) continue;
    out.push_back({.name = properties.name,
                   .description = properties.description,
                   .kind = std::string(*kind),
                   .total_bytes = properties.memory_total,
                   .available_bytes = properties.memory_free});
  }
  return out;
}

}  // namespace molly::engine
