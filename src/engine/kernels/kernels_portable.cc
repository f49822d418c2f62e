#include "engine/kernels/vector_portable.h"
// The bodies work for any vector.
#include "engine/kernels/attention_body.h"
#include "engine/kernels/lora_body.h"
#include "engine/kernels/store_body.h"

namespace molly::engine {

const KernelSet portable_kernels = {.shrink = shrink<Portable>,
                                    .expand = expand<Portable>,
                                    .store_row = store_row<Portable>,
                                    .attend = attend_block_of<Portable>};

}  // namespace molly::engine
