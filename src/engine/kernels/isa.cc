#include "engine/kernels/isa.h"

#include <array>
#include <cstdlib>

namespace molly::engine {
namespace {

constexpr std::array<Isa, 4> best_first = {Isa::avx512, Isa::avx2, Isa::neon, Isa::scalar};

Isa best_supported() {
  for (const Isa isa : best_first) {
    if (is_supported(isa)) return isa;
  }
  return Isa::scalar;
}

Isa chosen() {
  const char* asked = std::getenv("MOLLY_ENGINE_ISA");
  if (asked == nullptr) return best_supported();
  for (const Isa isa : best_first) {
    if (to_string(isa) == asked && is_supported(isa)) return isa;
  }
  return best_supported();
}

}  // namespace

bool is_supported(Isa isa) {
  switch (isa) {
    case Isa::scalar: return true;
#if defined(__x86_64__)
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    case Isa::avx512:
      return is_supported(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#elif defined(__aarch64__)
    case Isa::neon: return true;
#endif
    default: return false;
  }
}

Isa best_isa() {
  static const Isa isa = chosen();
  return isa;
}

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::neon: return "neon";
  }
  return "unknown";
}

}  // namespace molly::engine
