#include "sizing/plan_json.h"

namespace molly::sizing {

void write_device(base::JsonWriter& json, const Device& device, std::uint64_t budget_bytes) {
  json.begin_object().member("cores", device.cores).key("memory").begin_object();
  json.member("total_bytes", device.memory.total_bytes).member("available_bytes", device.memory.available_bytes);
  json.member("for_models_bytes", budget_bytes).end_object().key("accelerators").begin_array();
  for (const Accelerator& accelerator : device.accelerators) {
    json.begin_object().member("name", accelerator.name).member("description", accelerator.description);
    json.member("kind", accelerator.kind).member("total_bytes", accelerator.total_bytes);
    json.member("available_bytes", accelerator.available_bytes).end_object();
  }
  json.end_array().end_object();
}

void write_header(base::JsonWriter& json, const gguf::ModelFile& model) {
  json.member("architecture", model.architecture).member("parameters", model.parameters);
  json.member("quantization", model.quantization).member("bits_per_weight", bits_per_weight(model));
  json.member("trained_context", model.context_length);
}

void write_plan(base::JsonWriter& json, const EnginePlan& plan) {
  json.member("fits", plan.fits()).member("useful_context", plan.useful_context);
  if (!plan.fits()) json.member("problem", plan.problem).member("missing_bytes", plan.missing_bytes);
  if (!plan.has_figures()) return;
  json.member("memory_bytes", plan.memory_bytes()).key("weights").begin_object();
  json.member("copied_bytes", plan.weights.copied).member("mapped_bytes", plan.weights.mapped).end_object();
  json.member("compute_bytes", plan.compute_bytes).member("threads", plan.threads);
  json.member("context", plan.context).member("parallel", plan.parallel).member("kv_type", to_string(plan.kv_type));
  json.key("pool").begin_object().member("bytes", plan.pool_bytes()).member("pages", plan.pages);
  json.member("page_bytes", plan.page_bytes).member("page_tokens", plan.page_tokens).end_object();
  json.key("adapters").begin_object().member("resident", plan.resident_adapters).member("rank", plan.adapter_rank);
  json.member("bytes", plan.adapter_bytes).end_object().member("warm_bytes", plan.warm_bytes);
}

}  // namespace molly::sizing
