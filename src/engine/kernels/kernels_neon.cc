#if defined(__aarch64__)

#include "engine/kernels/vector_neon.h"
// The bodies work for any vector.
#include "engine/kernels/attention_body.h"
#include "engine/kernels/lora_body.h"
#include "engine/kernels/store_body.h"

namespace molly::engine {

const KernelSet neon_kernels = {
    .shrink = shrink<Neon>, .expand = expand<Neon>, .store_row = store_row<Neon>, .attend = attend_block_of<Neon>};

}  // namespace molly::engine

#endif
