#include "engine/kernels/kernel_set.h"

namespace molly::engine {

const KernelSet& kernel_set(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2: return avx2_kernels;
    case Isa::avx512: return avx512_kernels;
#elif defined(__aarch64__)
    case Isa::neon: return neon_kernels;
#endif
    default: return portable_kernels;
  }
}

}  // namespace molly::engine
