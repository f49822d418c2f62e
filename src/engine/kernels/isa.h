#pragma once

#include <cstdint>
#include <string_view>

namespace molly::engine {

// Instruction sets that own kernels are written for. Debian's baseline is x86-64, so the choice is made at run time.
enum class Isa : std::uint8_t { scalar, avx2, avx512, neon };

// The best one that this processor and its operating system support. MOLLY_ENGINE_ISA=scalar|avx2|avx512|neon asks for
// a lesser one (for tests and benchmarks); one that is not supported is ignored.
Isa best_isa();

// Whether kernels for it are in this build and may run here.
bool is_supported(Isa isa);

std::string_view to_string(Isa isa);

}  // namespace molly::engine
