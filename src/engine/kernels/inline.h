#pragma once

// A loop over registers must be unrolled whatever the optimisation level: arrays of registers stay registers only then.
#if defined(__clang__)
#define MOLLY_UNROLL _Pragma("unroll")
#else
#define MOLLY_UNROLL _Pragma("GCC unroll 16")
#endif

#define MOLLY_INLINE [[gnu::always_inline]] inline
