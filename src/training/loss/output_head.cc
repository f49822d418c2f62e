#include "training/loss/output_head.h"

#include <cblas.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace molly::training {
namespace {

constexpr std::size_t chunk_bytes = 32U << 20;  // of logits
constexpr std::size_t min_chunk_rows = 32;      // below, products are slower than reading the weight
constexpr std::size_t max_chunk_rows = 512;
constexpr std::size_t block_bytes = 8U << 20;  // of the weight in single precision

std::size_t rows_within(std::size_t bytes, std::size_t row_numbers, std::size_t least, std::size_t most) {
  return std::clamp(bytes / (sizeof(float) * row_numbers), least, most);
}

int as_int(std::size_t number) { return static_cast<int>(number); }

}  // namespace

OutputHead::OutputHead(ggml_tensor* weight, ggml_tensor* gradient)
    : weight_(weight),
      gradient_(gradient),
      width_(static_cast<std::size_t>(weight->ne[0])),
      vocabulary_(static_cast<std::size_t>(weight->ne[1])),
      chunk_rows_(rows_within(chunk_bytes, vocabulary_, min_chunk_rows, max_chunk_rows)),
      block_rows_(std::min(vocabulary_, rows_within(block_bytes, width_, 1, vocabulary_))),
      states_(chunk_rows_ * width_),
      gradients_(chunk_rows_ * width_),
      logits_(chunk_rows_ * vocabulary_),
      block_(weight->type == GGML_TYPE_F32 ? 0 : block_rows_ * width_) {}

std::uint64_t OutputHead::bytes() const {
  return sizeof(float) * (states_.size() + gradients_.size() + logits_.size() + block_.size());
}

const float* OutputHead::block(std::size_t first, std::size_t count) {
  const std::byte* stored = static_cast<const std::byte*>(weight_->data) + first * weight_->nb[1];
  if (weight_->type == GGML_TYPE_F32) return reinterpret_cast<const float*>(stored);
  ggml_get_type_traits(weight_->type)->to_float(stored, block_.data(), static_cast<std::int64_t>(count * width_));
  return block_.data();
}

void OutputHead::gather(std::span<const float> hidden, std::span<const std::uint32_t> rows) {
  float* out = states_.data();
  for (const std::uint32_t row : rows) {
    assert((row + std::size_t{1}) * width_ <= hidden.size());
    out = std::ranges::copy(hidden.subspan(row * width_, width_), out).out;
  }
}

// logits = states weight^T
void OutputHead::multiply(std::size_t rows) {
  for (std::size_t first = 0; first < vocabulary_; first += block_rows_) {
    const std::size_t count = std::min(block_rows_, vocabulary_ - first);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, as_int(rows), as_int(count), as_int(width_), 1, states_.data(),
                as_int(width_), block(first, count), as_int(width_), 0, logits_.data() + first, as_int(vocabulary_));
  }
}

// gradients = (d loss / d logits) weight
void OutputHead::multiply_back(std::size_t rows) {
  for (std::size_t first = 0; first < vocabulary_; first += block_rows_) {
    const std::size_t count = std::min(block_rows_, vocabulary_ - first);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, as_int(rows), as_int(width_), as_int(count), 1,
                logits_.data() + first, as_int(vocabulary_), block(first, count), as_int(width_), first == 0 ? 0 : 1,
                gradients_.data(), as_int(width_));
  }
}

// d loss / d weight += (d loss / d logits)^T states
void OutputHead::add_weight_gradient(std::size_t rows) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, as_int(vocabulary_), as_int(width_), as_int(rows), 1,
              logits_.data(), as_int(vocabulary_), states_.data(), as_int(width_), 1,
              static_cast<float*>(gradient_->data), as_int(width_));
}

double OutputHead::backward(std::span<const float> hidden, std::span<const std::uint32_t> rows,
                            std::span<float> hidden_gradient, const RowLoss& loss) {
  double sum = 0;
  for (std::size_t first = 0; first < rows.size(); first += chunk_rows_) {
    const auto chunk = rows.subspan(first, std::min(chunk_rows_, rows.size() - first));
    gather(hidden, chunk);
    multiply(chunk.size());
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      sum += loss(first + i, std::span(logits_).subspan(i * vocabulary_, vocabulary_));
    }
    multiply_back(chunk.size());
    if (gradient_ != nullptr) add_weight_gradient(chunk.size());
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      cblas_saxpy(as_int(width_), 1, gradients_.data() + i * width_, 1, hidden_gradient.data() + chunk[i] * width_, 1);
    }
  }
  return sum;
}

void OutputHead::forward(std::span<const float> hidden, std::span<const std::uint32_t> rows, const RowReader& read) {
  for (std::size_t first = 0; first < rows.size(); first += chunk_rows_) {
    const auto chunk = rows.subspan(first, std::min(chunk_rows_, rows.size() - first));
    gather(hidden, chunk);
    multiply(chunk.size());
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      read(first + i, std::span(logits_).subspan(i * vocabulary_, vocabulary_));
    }
  }
}

double soft_max(std::span<float> logits) {
  const float most = std::ranges::max(logits);
  double sum = 0;
  for (float& logit : logits) sum += logit = std::exp(logit - most);
  const auto factor = static_cast<float>(1 / sum);
  for (float& share : logits) share *= factor;
  return most + std::log(sum);
}

double cross_entropy(std::span<float> logits, std::int32_t token, double weight) {
  const double wanted = logits[static_cast<std::size_t>(token)];
  const double loss = weight * (soft_max(logits) - wanted);
  for (float& share : logits) share *= static_cast<float>(weight);
  logits[static_cast<std::size_t>(token)] -= static_cast<float>(weight);
  return loss;
}

}  // namespace molly::training
