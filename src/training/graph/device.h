#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <memory>

#include "core/error.h"
#include "engine/model/backend.h"

namespace molly::training {

// One worker's way to compute: BLAS for matrix products, the processor's own kernels for the rest, one thread each.
// Workers run side by side on rows of their own, which scales better than several threads inside small products.
class Device {
 public:
  // unavailable: ggml finds no backend for the processor, or none for BLAS.
  static Result<std::unique_ptr<Device>> open();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ggml_backend_buffer_type_t buffer_type() const;
  // A scheduler over both backends for graphs of up to `nodes` nodes.
  ggml_backend_sched_t scheduler(std::size_t nodes) const;

 private:
  Device() = default;
  ggml_backend_t blas_ = nullptr;
  ggml_backend_t processor_ = nullptr;
};

struct FreeScheduler {
  void operator()(ggml_backend_sched* scheduler) const { ggml_backend_sched_free(scheduler); }
};
using Scheduler = std::unique_ptr<ggml_backend_sched, FreeScheduler>;

}  // namespace molly::training
