#pragma once

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.h"
#include "engine/kernels/packed.h"

namespace molly::engine {

// What threads of the kernel runtime do while they wait for each other. Spinning is a little faster on an idle machine
// and collapses when another process takes a core (measured in docs/engine.md), so sleeping is the default.
enum class Waiting : std::uint8_t { sleep, spin };

// Who multiplies with quantized weights: our kernels where they know the format and the processor, or ggml alone.
enum class Products : std::uint8_t { own, ggml };

struct BackendOptions {
  std::uint32_t threads = 0;  // 0: one for each core that we may use
  Waiting waiting = Waiting::sleep;
  Products products = Products::own;
};

// This machine's processor through ggml. One for each process: the wait policy is read when the runtime is loaded.
class Backend {
 public:
  static Result<std::unique_ptr<Backend>> open(const BackendOptions& options);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  ggml_backend_buffer_type_t plain() const { return plain_; }
  // The buffer type whose layout multiplies a weight [n_in, n_out] of this type faster than the plain one; null: none.
  ggml_backend_buffer_type_t repacked(ggml_type type, std::int64_t n_in, std::int64_t n_out) const;
  // How our own kernels want such a weight; nothing: ggml multiplies with it.
  std::optional<PackedType> packed(ggml_type type, std::int64_t n_in) const;
  // Weights that lie in memory that we own (a mapped file). `bytes` must outlive the buffer.
  ggml_backend_buffer_t wrap(void* memory, std::size_t bytes) const;
  Result<void> compute(ggml_cgraph* graph);
  std::uint32_t threads() const { return threads_; }

 private:
  Backend() = default;
  ggml_backend_dev_t device_ = nullptr;
  ggml_backend_t backend_ = nullptr;
  ggml_backend_buffer_type_t plain_ = nullptr;
  std::vector<ggml_backend_buffer_type_t> extra_;
  std::uint32_t threads_ = 1;
  Products products_ = Products::own;
};

// Owners of ggml's handles.
struct FreeContext {
  void operator()(ggml_context* context) const { ggml_free(context); }
};
using Context = std::unique_ptr<ggml_context, FreeContext>;
struct FreeBuffer {
  void operator()(ggml_backend_buffer* buffer) const { ggml_backend_buffer_free(buffer); }
};
using Buffer = std::unique_ptr<ggml_backend_buffer, FreeBuffer>;

// A context that holds descriptions of so many tensors, and no data.
Context describe_tensors(std::size_t tensors);

}  // namespace molly::engine
