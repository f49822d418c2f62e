#include "engine/model/backend.h"

#include <ggml-cpu.h>
#include <ggml.h>
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace molly::engine {
namespace {

// libgomp reads these when it is loaded, which happens when ggml loads its CPU backend.
void set_wait_policy(Waiting waiting) {
  ::setenv("OMP_WAIT_POLICY", waiting == Waiting::sleep ? "passive" : "active", 0);
}

void load_backends_once(Waiting waiting) {
  static std::once_flag once;
  std::call_once(once, [&] {
    set_wait_policy(waiting);
    ggml_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    ggml_backend_load_all();
  });
}

std::uint32_t usable_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&cores)));
}

template <class Function>
Function procedure(ggml_backend_dev_t device, const char* name) {
  return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name));
}

std::vector<ggml_backend_buffer_type_t> extra_buffer_types(ggml_backend_dev_t device) {
  std::vector<ggml_backend_buffer_type_t> out;
  const auto get = procedure<ggml_backend_dev_get_extra_bufts_t>(device, "ggml_backend_dev_get_extra_bufts");
  if (get == nullptr) return out;
  for (auto* type = get(device); type != nullptr && *type != nullptr; ++type) out.push_back(*type);
  return out;
}

std::optional<PackedType> packed_type_of(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q4_0: return PackedType::q4_0;
    case GGML_TYPE_Q8_0: return PackedType::q8_0;
    case GGML_TYPE_Q4_K: return PackedType::q4_k;
    case GGML_TYPE_Q6_K: return PackedType::q6_k;
    default: return std::nullopt;
  }
}

}  // namespace

Context describe_tensors(std::size_t tensors) {
  return Context(ggml_init({.mem_size = ggml_tensor_overhead() * tensors, .mem_buffer = nullptr, .no_alloc = true}));
}

Result<std::unique_ptr<Backend>> Backend::open(const BackendOptions& options) {
  load_backends_once(options.waiting);
  std::unique_ptr<Backend> out(new Backend);
  out->device_ = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (out->device_ == nullptr) {
    return failure(ErrorCode::unavailable,
                   "ggml has no backend for this processor: is libggml's CPU backend installed?");
  }
  out->backend_ = ggml_backend_dev_init(out->device_, nullptr);
  if (out->backend_ == nullptr) return failure(ErrorCode::unavailable, "ggml's CPU backend cannot be started");
  out->plain_ = ggml_backend_dev_buffer_type(out->device_);
  out->extra_ = extra_buffer_types(out->device_);
  out->threads_ = options.threads > 0 ? options.threads : usable_cores();
  out->products_ = options.products;
  if (const auto set = procedure<ggml_backend_set_n_threads_t>(out->device_, "ggml_backend_set_n_threads")) {
    set(out->backend_, static_cast<int>(out->threads_));
  }
  return out;
}

Backend::~Backend() {
  if (backend_ != nullptr) ggml_backend_free(backend_);
}

std::optional<PackedType> Backend::packed(ggml_type type, std::int64_t n_in) const {
  if (products_ == Products::ggml || !can_multiply_packed()) return std::nullopt;
  const auto known = packed_type_of(type);
  return known && n_in % block_of(*known) == 0 ? known : std::nullopt;
}

ggml_backend_buffer_type_t Backend::repacked(ggml_type type, std::int64_t n_in, std::int64_t n_out) const {
  for (ggml_backend_buffer_type_t candidate : extra_) {
    const Context context = describe_tensors(3);
    ggml_tensor* weight = ggml_new_tensor_2d(context.get(), type, n_in, n_out);
    ggml_tensor* product =
        ggml_mul_mat(context.get(), weight, ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, n_in, 512));
    const Buffer probe(ggml_backend_buft_alloc_buffer(candidate, 0));
    weight->buffer = probe.get();
    if (probe && ggml_backend_dev_supports_op(device_, product)) return candidate;
  }
  return nullptr;
}

ggml_backend_buffer_t Backend::wrap(void* memory, std::size_t bytes) const {
  return ggml_backend_dev_buffer_from_host_ptr(device_, memory, bytes, bytes);
}

Result<void> Backend::compute(ggml_cgraph* graph) {
  if (ggml_backend_graph_compute(backend_, graph) == GGML_STATUS_SUCCESS) return {};
  return failure(ErrorCode::internal, "the forward pass failed in ggml");
}

}  // namespace molly::engine
