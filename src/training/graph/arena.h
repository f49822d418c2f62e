#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/model/backend.h"

namespace molly::training {

struct TensorShape {
  std::string name;
  std::int64_t ne0 = 1;  // innermost
  std::int64_t ne1 = 1;
};

// Single-precision tensors in one run of memory: parameters, or their gradients. Optimizers and checkpoints see one
// long vector, graphs see tensors. Numbers between the tensors are zero and stay so.
class Arena {
 public:
  // overloaded: no memory.
  static Result<Arena> make(std::span<const TensorShape> shapes, ggml_backend_buffer_type_t type);

  std::span<ggml_tensor* const> tensors() const { return tensors_; }  // in the order of the shapes
  std::span<float> numbers() const { return numbers_; }
  void clear() const;

 private:
  engine::Context context_;
  engine::Buffer buffer_;
  std::vector<ggml_tensor*> tensors_;
  std::span<float> numbers_;
};

std::span<float> numbers_of(ggml_tensor* tensor);

}  // namespace molly::training
