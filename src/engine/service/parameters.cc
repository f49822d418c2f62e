#include "engine/service/parameters.h"

#include <array>
#include <charconv>
#include <limits>

#include "wire/json_reader.h"

namespace molly::engine {
namespace {

using wire::JsonReader;

void read_mix(JsonReader& in, Parameters& out) {
  in.object([&](std::string_view name) {
    out.adapters.emplace_back(std::string(name), static_cast<float>(in.number().value));
  });
}

constexpr auto drafting_names = std::to_array<std::pair<std::string_view, Drafting>>({
    {"auto", Drafting::automatic},
    {"off", Drafting::off},
    {"ngram", Drafting::ngram},
    {"model", Drafting::model},
    {"base", Drafting::base},
    {"pushed", Drafting::pushed},
});

void read_drafting(JsonReader& in, Parameters& out) {
  const std::string wanted = in.string();
  for (const auto& [name, drafting] : drafting_names) {
    if (name != wanted) continue;
    out.drafting = drafting;
    return;
  }
  in.fail(R"(must be "auto", "off", "ngram", "model", "base" or "pushed")");
}

void read_breakers(JsonReader& in, Parameters& out) {
  out.sampling.dry_sequence_breakers.clear();
  in.array([&](std::uint32_t) { out.sampling.dry_sequence_breakers.push_back(in.string()); });
}

template <auto Member>
void real(JsonReader& in, Parameters& out) {
  out.sampling.*Member = static_cast<float>(in.number().value);
}

template <auto Member>
void whole(JsonReader& in, Parameters& out) {
  out.sampling.*Member = static_cast<std::int32_t>(in.integer());
}

struct Extra {
  std::string_view name;
  void (*read)(JsonReader&, Parameters&);
};

// What core's Request has no place for.
constexpr auto extras = std::to_array<Extra>({
    {"adapter", [](JsonReader& in, Parameters& out) { out.adapters.emplace_back(in.string(), 1.0F); }},
    {"adapter_mix", read_mix},
    {"cache_domain", [](JsonReader& in, Parameters& out) { out.cache_domain = in.string(); }},
    {"member", [](JsonReader& in, Parameters& out) { out.member = in.string(); }},
    {"priority", [](JsonReader& in, Parameters& out) { out.priority = static_cast<std::int32_t>(in.integer()); }},
    {"deadline_ms", [](JsonReader& in, Parameters& out) { out.deadline_ms = in.unsigned_integer(86'400'000); }},
    {"drafting", read_drafting},
    {"draft_channel", [](JsonReader& in, Parameters& out) { out.draft_channel = in.string(); }},
    {"return_tokens", [](JsonReader& in, Parameters& out) { out.return_tokens = in.boolean(); }},
    {"task_class", [](JsonReader& in, Parameters& out) { out.task_class = in.string(); }},
    {"confidence", [](JsonReader& in, Parameters& out) { out.confidence = in.boolean(); }},
    {"chat_template_kwargs", [](JsonReader& in, Parameters& out) { out.template_variables = std::string(in.raw()); }},
    {"grammar", [](JsonReader& in, Parameters& out) { out.sampling.grammar = in.string(); }},
    {"ignore_eos", [](JsonReader& in, Parameters& out) { out.sampling.ignore_end = in.boolean(); }},
    {"min_tokens",
     [](JsonReader& in, Parameters& out) {
       out.sampling.min_tokens = static_cast<std::uint32_t>(in.unsigned_integer(1 << 20));
     }},
    {"min_keep",
     [](JsonReader& in, Parameters& out) {
       out.sampling.min_keep = static_cast<std::uint32_t>(in.unsigned_integer(1 << 20));
     }},
    {"typical_p", real<&SamplingSettings::typical_p>},
    {"top_n_sigma", real<&SamplingSettings::top_n_sigma>},
    {"xtc_probability", real<&SamplingSettings::xtc_probability>},
    {"xtc_threshold", real<&SamplingSettings::xtc_threshold>},
    {"dynatemp_range", real<&SamplingSettings::dynamic_temperature_range>},
    {"dynatemp_exponent", real<&SamplingSettings::dynamic_temperature_exponent>},
    {"repeat_last_n", whole<&SamplingSettings::repeat_last_n>},
    {"dry_multiplier", real<&SamplingSettings::dry_multiplier>},
    {"dry_base", real<&SamplingSettings::dry_base>},
    {"dry_allowed_length", whole<&SamplingSettings::dry_allowed_length>},
    {"dry_penalty_last_n", whole<&SamplingSettings::dry_penalty_last_n>},
    {"dry_sequence_breakers", read_breakers},
    {"mirostat", whole<&SamplingSettings::mirostat>},
    {"mirostat_tau", real<&SamplingSettings::mirostat_tau>},
    {"mirostat_eta", real<&SamplingSettings::mirostat_eta>},
});

Result<void> read_extra(const std::string& name, const RawJson& value, Parameters& out) {
  for (const Extra& extra : extras) {
    if (extra.name != name) continue;
    JsonReader in(value.text);
    extra.read(in, out);
    in.expect_end();
    if (in.ok()) return {};
    return failure(ErrorCode::invalid_request, name + (in.path().empty() ? "" : "." + in.path()) + " " + in.problem(),
                   name);
  }
  // What a client may leave empty asks for nothing.
  if (value.text == "null" || value.text == "[]" || value.text == "{}" || value.text == "\"\"" ||
      value.text == "false") {
    return {};
  }
  return failure(ErrorCode::unsupported_parameter, "the engine does not know the parameter '" + name + "'", name);
}

void set(const std::optional<Number>& from, float& into) {
  if (from) into = static_cast<float>(from->value);
}

Result<void> read_logit_bias(const RawJson& value, SamplingSettings& out) {
  if (value.text.empty()) return {};
  JsonReader in(value.text);
  in.object([&](std::string_view key) {
    Token token = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), token);
    if (parsed.ec != std::errc{} || parsed.ptr != key.data() + key.size()) return in.fail("is not named by a token");
    const auto bias = static_cast<float>(in.number().value);
    out.logit_bias[token] = bias <= -100 ? -std::numeric_limits<float>::infinity() : bias;
  });
  in.expect_end();
  if (in.ok()) return {};
  return failure(ErrorCode::invalid_request, "logit_bias " + in.problem(), "logit_bias");
}

void read_sampling(const Sampling& from, SamplingSettings& out) {
  set(from.temperature, out.temperature);
  set(from.top_p, out.top_p);
  set(from.min_p, out.min_p);
  set(from.presence_penalty, out.presence_penalty);
  set(from.frequency_penalty, out.frequency_penalty);
  set(from.repeat_penalty, out.repeat_penalty);
  if (from.top_k) out.top_k = static_cast<std::int32_t>(from.top_k->value);
  if (from.seed) out.seed = static_cast<std::uint32_t>(static_cast<std::int64_t>(from.seed->value));
  out.top_logprobs = from.top_logprobs.value_or(0);
}

// json_schema: {"type":"json_schema","json_schema":{"name","schema","strict"}}
Result<std::string> schema_of(const RawJson& format) {
  JsonReader in(format.text);
  std::string schema;
  in.object([&](std::string_view key) {
    if (key != "json_schema") return in.skip();
    in.object([&](std::string_view inner) {
      if (inner == "schema") {
        schema = in.raw();
      } else {
        in.skip();
      }
    });
  });
  in.expect_end();
  if (!in.ok()) return failure(ErrorCode::invalid_request, in.path() + " " + in.problem(), "response_format");
  if (schema.empty()) return std::string("{}");
  return schema;
}

Result<std::optional<std::string>> response_schema(const ResponseFormat& format) {
  switch (format.kind) {
    case ResponseFormat::Kind::json_object: return R"({"type":"object"})";
    case ResponseFormat::Kind::json_schema: return schema_of(format.whole);
    case ResponseFormat::Kind::opaque:
      return failure(ErrorCode::unsupported_parameter, "this kind of response_format is not known", "response_format");
    case ResponseFormat::Kind::unset:
    case ResponseFormat::Kind::text: break;
  }
  return std::nullopt;
}

}  // namespace

Result<Parameters> read_parameters(const Request& request) {
  Parameters out;
  read_sampling(request.sampling, out.sampling);
  if (auto biased = read_logit_bias(request.sampling.logit_bias, out.sampling); !biased) {
    return std::unexpected(biased.error());
  }
  for (const auto& [name, value] : request.extra) {
    if (auto read = read_extra(name, value, out); !read) return std::unexpected(read.error());
  }
  auto schema = response_schema(request.response_format);
  if (!schema) return std::unexpected(schema.error());
  out.response_schema = *std::move(schema);
  if (out.return_tokens && !request.stream) {
    return failure(ErrorCode::unsupported_parameter, "tokens are returned in streams only", "return_tokens");
  }
  out.logprobs = request.sampling.logprobs.value_or(false) || request.sampling.top_logprobs.has_value();
  out.sampling.logprobs = out.logprobs;
  out.echo = request.echo.value_or(false);
  return out;
}

}  // namespace molly::engine
