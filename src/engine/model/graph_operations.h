#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "engine/kernels/attention.h"
#include "engine/kernels/prefetcher.h"
#include "engine/model/weights.h"

namespace molly::engine {

class ForwardGraph;

// Where keys and values lie: pages of equal size, each with the keys and the values of `page_tokens` tokens in every
// layer.
struct PoolLayout {
  std::byte* base = nullptr;
  std::size_t page_bytes = 0;
  std::size_t chunk_bytes = 0;  // keys, or values, of one layer in one page
  std::size_t row_bytes = 0;    // of one token in one layer
  std::uint32_t pages = 0;
  std::uint32_t page_tokens = 0;
  KvType type = KvType::f16;

  std::size_t key_offset(std::uint32_t layer) const { return std::size_t{2} * layer * chunk_bytes; }
  std::size_t value_offset(std::uint32_t layer) const { return key_offset(layer) + chunk_bytes; }
  std::size_t bytes() const { return page_bytes * pages; }
};

// The two parts of a forward pass that are not one operation of ggml: adapters that differ from row to row, and
// attention over pages.
class GraphOperations {
 public:
  virtual ~GraphOperations() = default;

  // y [n_out, rows], what `linear` makes of x [n_in, rows], plus what the adapters of the rows make of x.
  virtual ggml_tensor* adapt(ForwardGraph& graph, const Linear& linear, ggml_tensor* x, ggml_tensor* y) = 0;
  // Stores k and v [kv_width, rows] in the pages, attends over all positions before and at each row with
  // q [head_dim, n_head, rows]; [n_head * head_dim, rows].
  virtual ggml_tensor* attend(ForwardGraph& graph, std::uint32_t layer, ggml_tensor* q, ggml_tensor* k,
                              ggml_tensor* v) = 0;

  // What `adapt` will read of memory in each pass, for the product before it to fetch; null: nothing worth it. Stays
  // at its place as long as these operations.
  virtual const std::vector<MemoryRun>* read_by_adapters(const ForwardGraph&, const Linear&) const { return nullptr; }

  // The graphs built so far serve every pass with as many rows, and so this one; else they are built anew for each.
  virtual bool graphs_last() const = 0;
  virtual std::size_t nodes_for_each_layer() const = 0;
  // Called when a graph begins, and when its tensors have their memory.
  // overloaded: no memory for what it needs.
  virtual Result<void> begin(ForwardGraph&) { return {}; }
  virtual void set_inputs() {}
};

}  // namespace molly::engine
