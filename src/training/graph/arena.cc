#include "training/graph/arena.h"

#include <ggml-alloc.h>

#include <algorithm>

namespace molly::training {

Result<Arena> Arena::make(std::span<const TensorShape> shapes, ggml_backend_buffer_type_t type) {
  Arena out;
  out.context_ = engine::describe_tensors(shapes.size() + 1);
  for (const TensorShape& shape : shapes) {
    ggml_tensor* tensor = shape.ne1 == 1 ? ggml_new_tensor_1d(out.context_.get(), GGML_TYPE_F32, shape.ne0)
                                         : ggml_new_tensor_2d(out.context_.get(), GGML_TYPE_F32, shape.ne0, shape.ne1);
    ggml_set_name(tensor, shape.name.c_str());
    out.tensors_.push_back(tensor);
  }
  if (shapes.empty()) return out;
  out.buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(out.context_.get(), type));
  if (!out.buffer_) return failure(ErrorCode::overloaded, "no memory for the parameters of training");
  out.numbers_ = {static_cast<float*>(ggml_backend_buffer_get_base(out.buffer_.get())),
                  ggml_backend_buffer_get_size(out.buffer_.get()) / sizeof(float)};
  out.clear();
  return out;
}

void Arena::clear() const { std::ranges::fill(numbers_, 0.0F); }

std::span<float> numbers_of(ggml_tensor* tensor) {
  return {static_cast<float*>(tensor->data), static_cast<std::size_t>(ggml_nelements(tensor))};
}

}  // namespace molly::training
