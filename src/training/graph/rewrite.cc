#include "training/graph/rewrite.h"

#include <cstring>

namespace molly::training {
namespace {

ggml_tensor* contiguous(ggml_context* context, ggml_tensor* x) {
  return ggml_is_contiguous(x) ? x : ggml_cont(context, x);
}

ggml_tensor* transposed(ggml_context* context, ggml_tensor* x) {
  // A transpose of a transpose is the tensor itself.
  if (x->op == GGML_OP_TRANSPOSE) return contiguous(context, x->src[0]);
  return ggml_cont(context, ggml_transpose(context, x));
}

// One matrix: BLAS takes an outer product of single-precision numbers as it is.
void cast_factor(ggml_context* context, ggml_tensor* product) {
  ggml_tensor*& left = product->src[0];
  if (left->type != GGML_TYPE_F32) left = ggml_cast(context, left, GGML_TYPE_F32);
  left = contiguous(context, left);
}

// A stack of matrices, as in attention: out_prod(a, b) = a b^T = mul_mat(a^T, b^T) in ggml's convention.
void become_matrix_product(ggml_context* context, ggml_tensor* product) {
  ggml_tensor* left = transposed(context, product->src[0]);
  ggml_tensor* right = transposed(context, product->src[1]);
  product->op = GGML_OP_MUL_MAT;
  product->src[0] = left;
  product->src[1] = right;
  std::memset(product->op_params, 0, sizeof product->op_params);
}

}  // namespace

void rewrite_products(ggml_context* context, ggml_cgraph* graph) {
  const int nodes = ggml_graph_n_nodes(graph);
  for (int i = 0; i < nodes; ++i) {
    ggml_tensor* node = ggml_graph_node(graph, i);
    if (node->op != GGML_OP_OUT_PROD) continue;
    if (ggml_is_matrix(node->src[0]) && ggml_is_matrix(node->src[1])) {
      cast_factor(context, node);
    } else {
      become_matrix_product(context, node);
    }
  }
}

}  // namespace molly::training
