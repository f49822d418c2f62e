#include <array>

#include "wire/json_members.h"
#include "wire/json_write.h"
#include "wire/openai.h"

// /v1/models.
namespace molly::wire {
namespace {

void write_model(base::JsonWriter& out, const ModelEntry& model) {
  out.begin_object().member("id", model.id).member("object", "model").member("created", model.created);
  out.member("owned_by", model.owned_by);
  write_members(out, model.extra);
  out.end_object();
}

// Some write a fraction; what no clock shows counts as unknown.
std::int64_t whole_seconds(const Number& number) {
  return number.value >= 0 && number.value < 1e15 ? static_cast<std::int64_t>(number.value) : 0;
}

constexpr std::array<Member<ModelEntry>, 4> model_members{{
    {"id", Rule::required, [](JsonReader& in, ModelEntry& model) { model.id = in.string(); }},
    {"object", Rule::any, [](JsonReader& in, ModelEntry&) { in.skip(); }},
    {"created", Rule::null_is_none,
     [](JsonReader& in, ModelEntry& model) { model.created = whole_seconds(in.number()); }},
    {"owned_by", Rule::null_is_none, [](JsonReader& in, ModelEntry& model) { model.owned_by = in.string(); }},
}};

struct ModelList {
  std::vector<ModelEntry> models;
};

constexpr std::array<Member<ModelList>, 1> list_members{{
    {"data", Rule::required,
     [](JsonReader& in, ModelList& list) {
       in.array([&](std::uint32_t) {
         ModelEntry& model = list.models.emplace_back();
         read_object(in, model_members, model, model.extra);
       });
     }},
}};

}  // namespace

std::string render_model_list(std::span<const ModelEntry> models) {
  base::JsonWriter out;
  out.begin_object().member("object", "list").key("data").begin_array();
  for (const ModelEntry& model : models) write_model(out, model);
  out.end_array().end_object();
  return std::move(out).text();
}

std::string render_model(const ModelEntry& model) {
  base::JsonWriter out;
  write_model(out, model);
  return std::move(out).text();
}

Result<std::vector<ModelEntry>> parse_model_list(std::string_view body) {
  JsonReader in(body);
  ModelList list;
  ExtraFields ignored;
  read_object(in, list_members, list, ignored);
  in.expect_end();
  if (in.ok()) return std::move(list.models);
  return failure(ErrorCode::upstream_failed,
                 "the target's list of models cannot be understood: " + in.path() + " " + in.problem());
}

}  // namespace molly::wire
