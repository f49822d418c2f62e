#if defined(__x86_64__)

// What other files share comes before the pragma: the linker keeps one copy of an inline function, which must run on
// every processor.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "engine/kernels/half.h"
#include "engine/kernels/inline.h"
#include "engine/kernels/kernel_set.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")
#endif

#include "engine/kernels/vector_avx512.h"
// The bodies work for any vector.
#include "engine/kernels/attention_body.h"
#include "engine/kernels/lora_body.h"
#include "engine/kernels/store_body.h"

namespace molly::engine {

const KernelSet avx512_kernels = {.shrink = shrink<Avx512>,
                                  .expand = expand<Avx512>,
                                  .store_row = store_row<Avx512>,
                                  .attend = attend_block_of<Avx512>};

}  // namespace molly::engine

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
