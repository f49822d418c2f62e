#include "training/graph/device.h"

#include <cblas.h>

#include <array>

namespace molly::training {
namespace {

void use_one_thread(ggml_backend_t backend) {
  ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
  const auto set = reinterpret_cast<ggml_backend_set_n_threads_t>(
      ggml_backend_reg_get_proc_address(registry, "ggml_backend_set_n_threads"));
  if (set != nullptr) set(backend, 1);
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open() {
  if (const auto loaded = engine::Backend::open({.threads = 1}); !loaded) return std::unexpected(loaded.error());
  std::unique_ptr<Device> out(new Device);
  out->blas_ = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_ACCEL, nullptr);
  if (out->blas_ == nullptr) {
    return failure(ErrorCode::unavailable, "ggml has no BLAS backend: is libggml's BLAS backend installed?");
  }
  out->processor_ = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  if (out->processor_ == nullptr) return failure(ErrorCode::unavailable, "ggml's CPU backend cannot be started");
  use_one_thread(out->blas_);
  use_one_thread(out->processor_);
  openblas_set_num_threads(1);
  return out;
}

Device::~Device() {
  if (blas_ != nullptr) ggml_backend_free(blas_);
  if (processor_ != nullptr) ggml_backend_free(processor_);
}

ggml_backend_buffer_type_t Device::buffer_type() const { return ggml_backend_get_default_buffer_type(processor_); }

ggml_backend_sched_t Device::scheduler(std::size_t nodes) const {
  std::array<ggml_backend_t, 2> backends{blas_, processor_};
  std::array<ggml_backend_buffer_type_t, 2> buffers{ggml_backend_get_default_buffer_type(blas_), buffer_type()};
  return ggml_backend_sched_new(backends.data(), buffers.data(), 2, nodes, false, true);
}

}  // namespace molly::training
