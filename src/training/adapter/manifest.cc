#include "training/adapter/manifest.h"

#include <array>
#include <format>

#include "base/json_writer.h"
#include "base/os/file.h"
#include "engine/model/adapter_shape.h"
#include "engine/model/architecture.h"
#include "gguf/model_file.h"
#include "training/digest.h"
#include "wire/json_members.h"

namespace molly::training {
namespace {

using wire::JsonReader;
using wire::Member;
using wire::Rule;

constexpr std::uint64_t max_manifest_bytes = 64ULL << 20;

void write_curve(base::JsonWriter& json, std::string_view name, const std::vector<LossPoint>& curve) {
  json.key(name).begin_array();
  for (const LossPoint& point : curve) json.begin_array().value(point.step).value(point.loss).end_array();
  json.end_array();
}

void read_point(JsonReader& in, LossPoint& point) {
  std::uint32_t count = 0;
  in.array([&](std::uint32_t index) {
    ++count;
    if (index == 0) return void(point.step = in.unsigned_integer());
    if (index == 1) return void(point.loss = in.number().value);
    in.fail("is one number too many");
  });
  if (in.ok() && count != 2) in.fail("must be a step and a loss");
}

void read_curve(JsonReader& in, std::vector<LossPoint>& curve) {
  in.array([&](std::uint32_t) { read_point(in, curve.emplace_back()); });
}

// The members of an object that a later version adds are passed over.
template <class T, std::size_t N>
void read_known(JsonReader& in, const std::array<Member<T>, N>& members, T& into) {
  ExtraFields ignored;
  wire::read_object(in, members, into, ignored);
}

constexpr std::array<Member<BaseIdentity>, 4> base_members{{
    {"sha256", Rule::required, [](JsonReader& in, BaseIdentity& base) { base.sha256 = in.string(); }},
    {"quantization", Rule::required, [](JsonReader& in, BaseIdentity& base) { base.quantization = in.string(); }},
    {"architecture", Rule::required, [](JsonReader& in, BaseIdentity& base) { base.architecture = in.string(); }},
    {"name", Rule::required, [](JsonReader& in, BaseIdentity& base) { base.name = in.string(); }},
}};

constexpr std::array<Member<LossCurves>, 2> curve_members{{
    {"train", Rule::required, [](JsonReader& in, LossCurves& curves) { read_curve(in, curves.train); }},
    {"held_out", Rule::required, [](JsonReader& in, LossCurves& curves) { read_curve(in, curves.held_out); }},
}};

constexpr std::array<Member<Manifest>, 10> manifest_members{{
    {"base", Rule::required, [](JsonReader& in, Manifest& to) { read_known(in, base_members, to.base); }},
    {"adapter_sha256", Rule::required, [](JsonReader& in, Manifest& to) { to.adapter_sha256 = in.string(); }},
    {"rank", Rule::required,
     [](JsonReader& in, Manifest& to) { to.rank = static_cast<std::uint32_t>(in.unsigned_integer(UINT32_MAX)); }},
    {"alpha", Rule::required, [](JsonReader& in, Manifest& to) { to.alpha = in.number().value; }},
    {"targets", Rule::required,
     [](JsonReader& in, Manifest& to) { in.array([&](std::uint32_t) { to.targets.push_back(in.string()); }); }},
    {"data_digest", Rule::required, [](JsonReader& in, Manifest& to) { to.data_digest = in.string(); }},
    {"data_label", Rule::required, [](JsonReader& in, Manifest& to) { to.data_label = in.string(); }},
    {"settings", Rule::null_is_none, [](JsonReader& in, Manifest& to) { to.settings = in.raw(); }},
    {"curves", Rule::required, [](JsonReader& in, Manifest& to) { read_known(in, curve_members, to.curves); }},
    {"trainer", Rule::required, [](JsonReader& in, Manifest& to) { to.trainer = in.string(); }},
}};

std::string described(const BaseIdentity& base) {
  return std::format("{} {} ({}..)", base.name.empty() ? base.architecture : base.name, base.quantization,
                     std::string_view(base.sha256).substr(0, 12));
}

}  // namespace

std::string manifest_json(const Manifest& manifest) {
  base::JsonWriter json;
  json.begin_object().key("base").begin_object().member("sha256", manifest.base.sha256);
  json.member("quantization", manifest.base.quantization).member("architecture", manifest.base.architecture);
  json.member("name", manifest.base.name).end_object();
  json.member("adapter_sha256", manifest.adapter_sha256).member("rank", manifest.rank).member("alpha", manifest.alpha);
  json.key("targets").begin_array();
  for (const auto& target : manifest.targets) json.value(target);
  json.end_array().member("data_digest", manifest.data_digest).member("data_label", manifest.data_label);
  if (!manifest.settings.empty()) json.raw_member("settings", manifest.settings);
  json.key("curves").begin_object();
  write_curve(json, "train", manifest.curves.train);
  write_curve(json, "held_out", manifest.curves.held_out);
  return std::move(json.end_object().member("trainer", manifest.trainer).end_object()).text();
}

Result<Manifest> parse_manifest(std::string_view text) {
  Manifest manifest;
  JsonReader in(text);
  read_known(in, manifest_members, manifest);
  in.expect_end();
  if (in.ok()) return manifest;
  const std::string where = in.path().empty() ? "the manifest" : in.path();
  return failure(ErrorCode::invalid_request, where + " " + in.problem(), where);
}

std::filesystem::path manifest_path(const std::filesystem::path& adapter) {
  auto path = adapter;
  return path.replace_extension(".manifest.json");
}

Result<void> write_manifest(const std::filesystem::path& adapter, const Manifest& manifest) {
  return base::write_file_atomically(manifest_path(adapter), manifest_json(manifest) + "\n");
}

Result<Manifest> read_manifest(const std::filesystem::path& adapter) {
  const auto path = manifest_path(adapter);
  const auto text = base::read_file(path, max_manifest_bytes);
  if (!text) return std::unexpected(text.error());
  auto manifest = parse_manifest(*text);
  if (!manifest) manifest.error().message = path.string() + ": " + manifest.error().message;
  return manifest;
}

Result<BaseIdentity> identify_base(const std::filesystem::path& model) {
  const auto header = gguf::read_model_file(model);
  if (!header) return std::unexpected(header.error());
  auto digest = sha256_of_file(model);
  if (!digest) return std::unexpected(digest.error());
  return BaseIdentity{*std::move(digest), header->quantization, header->architecture, header->name};
}

Result<engine::BaseShape> read_base_shape(const std::filesystem::path& model) {
  const auto header = gguf::read_model_file(model);
  if (!header) return std::unexpected(header.error());
  const auto* architecture = engine::find_architecture(header->architecture);
  if (architecture == nullptr) {
    return failure(ErrorCode::invalid_request,
                   model.string() + ": models of the architecture '" + header->architecture + "' are not supported");
  }
  auto config = engine::read_dense_config(*header);
  if (!config) return std::unexpected(config.error());
  config->rope_pairs = architecture->rope_pairs;
  return engine::adapter_shape(*config);
}

Result<void> check_base(const Manifest& manifest, const BaseIdentity& base) {
  if (manifest.base.sha256 == base.sha256) return {};
  return failure(ErrorCode::conflict, std::format("the adapter is for another base: it was made for {}, this is {}",
                                                  described(manifest.base), described(base)));
}

Result<void> check_adapter(const Manifest& manifest, const std::filesystem::path& adapter) {
  const auto digest = sha256_of_file(adapter);
  if (!digest) return std::unexpected(digest.error());
  if (*digest == manifest.adapter_sha256) return {};
  return failure(ErrorCode::conflict,
                 adapter.string() + " is not the file that its manifest was written for: its SHA-256 is another");
}

}  // namespace molly::training
