#pragma once

#include <ggml.h>

#include <cstdint>

namespace molly::training {

// What ggml's automatic differentiation asks for in a form that backends compute slowly or not at all.
enum class Rewrite : std::uint8_t {
  none,      // as ggml made it: the oracle of the tests
  products,  // quantized outer products through a cast to F32, batched ones through matrix products
};

// Rewrites the nodes of `graph` in place; new tensors are described in `context`. The graph must be collected again
// from its results afterwards, because new nodes are not part of it.
void rewrite_products(ggml_context* context, ggml_cgraph* graph);

}  // namespace molly::training
