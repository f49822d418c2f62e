#include "engine/service/generate.h"

#include <algorithm>
#include <format>

#include "base/json_writer.h"
#include "engine/service/logprobs.h"
#include "wire/json_reader.h"
#include "wire/openai.h"

namespace molly::engine {
namespace {

namespace asio = boost::asio;

double seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

void write_drafts(base::JsonWriter& json, const DraftTally& drafts) {
  const DraftCounts all = total(drafts);
  json.member("draft_n", all.drafted).member("draft_n_accepted", all.accepted);
  json.key("drafts").begin_object();
  for (const DraftKind kind : draft_kinds) {
    if (drafts[kind].drafted == 0) continue;
    json.key(to_string(kind)).begin_object();
    json.member("n", drafts[kind].drafted).member("n_accepted", drafts[kind].accepted).end_object();
  }
  json.end_object();
}

// llama-server's name and figures where it has them.
RawJson timings_json(const GenerationTimings& timings, const Usage& usage) {
  base::JsonWriter json;
  const auto prompt = usage.prompt_tokens - usage.cached_tokens.value_or(0);
  const auto rate = [](std::uint64_t count, double time) { return time > 0 ? static_cast<double>(count) / time : 0.0; };
  json.begin_object().member("cache_n", usage.cached_tokens.value_or(0)).member("prompt_n", prompt);
  json.member("prompt_ms", 1e3 * seconds(timings.prefill));
  json.member("prompt_per_second", rate(prompt, seconds(timings.prefill)));
  json.member("predicted_n", usage.completion_tokens).member("predicted_ms", 1e3 * seconds(timings.decode));
  json.member("predicted_per_second", rate(usage.completion_tokens, seconds(timings.decode)));
  json.member("queued_ms", 1e3 * seconds(timings.queued)).member("preemptions", timings.preemptions);
  write_drafts(json, timings.drafts);
  json.end_object();
  return {std::move(json).text()};
}

RawJson tokens_json(std::span<const Choice> tokens) {
  base::JsonWriter json;
  json.begin_array();
  for (const Choice& choice : tokens) json.value(choice.token);
  json.end_array();
  return {std::move(json).text()};
}

molly::FinishReason finish_of(FinishReason reason, bool has_called) {
  if (reason == FinishReason::length) return molly::FinishReason::length;
  return has_called ? molly::FinishReason::tool_calls : molly::FinishReason::stop;
}

// [1,2,3], or [[1,2],[3]].
Result<std::vector<std::vector<Token>>> token_prompts(const RawJson& text, std::uint32_t vocabulary) {
  std::vector<std::vector<Token>> out;
  wire::JsonReader in(text.text);
  const auto read_token = [&] { return static_cast<Token>(in.unsigned_integer(vocabulary - 1)); };
  in.array([&](std::uint32_t index) {
    if (in.peek() == wire::JsonReader::Kind::array) {
      out.emplace_back();
      in.array([&](std::uint32_t) { out.back().push_back(read_token()); });
    } else {
      if (index == 0) out.emplace_back();
      out.back().push_back(read_token());
    }
  });
  in.expect_end();
  if (in.ok()) return out;
  return failure(ErrorCode::invalid_request, "prompt" + in.path() + " " + in.problem(), "prompt");
}

}  // namespace

Result<std::string> render_chat(const Engine& engine, const Request& request, const Parameters& parameters) {
  if (engine.chat_template() == nullptr) {
    return failure(ErrorCode::unsupported_parameter, "this model has no chat template: use /v1/completions",
                   "messages");
  }
  return engine.chat_template()->render(
      request, {.with_tools = tells_tools(request), .extra_json = parameters.template_variables});
}

Result<Prompts> read_prompts(const Engine& engine, const Request& request, const Parameters& parameters) {
  const auto tokens_of = [&](const std::string& prompt) {
    return engine.vocabulary().tokenize(prompt, SpecialTokens::parsed, Beginning::as_model_wants);
  };
  Prompts out;
  if (request.endpoint == Endpoint::chat) {
    auto chat = render_chat(engine, request, parameters);
    if (!chat) return std::unexpected(chat.error());
    out.tokens.push_back(tokens_of(*chat));
    out.chat = *std::move(chat);
    return out;
  }
  if (!request.token_prompt.text.empty()) {
    auto tokens = token_prompts(request.token_prompt, engine.vocabulary().size());
    if (!tokens) return std::unexpected(tokens.error());
    out.tokens = *std::move(tokens);
    return out;
  }
  for (const std::string& prompt : request.prompts) out.tokens.push_back(tokens_of(prompt));
  if (out.tokens.empty()) return failure(ErrorCode::invalid_request, "prompt is required", "prompt");
  return out;
}

Generation::Generation(Engine& engine, Endpoint endpoint, Parameters parameters, AnswerPlan plan,
                       const asio::any_io_executor& executor)
    : engine_(engine),
      endpoint_(endpoint),
      parameters_(std::move(parameters)),
      plan_(std::move(plan)),
      submitted_(engine, executor) {}

Result<std::unique_ptr<Generation>> Generation::begin(Engine& engine, const Request& request,
                                                      const asio::any_io_executor& executor) {
  static constexpr wire::ParameterSupport support{.best_of = false,
                                                  .suffix = false,
                                                  .echo = false,
                                                  .reasoning_effort = false,
                                                  .image = false,
                                                  .audio = false,
                                                  .file = false,
                                                  .opaque_parts = false};
  if (const auto unsupported = wire::unsupported_parameters(request, support); !unsupported.empty()) {
    return failure(ErrorCode::unsupported_parameter, "the engine does not honour " + unsupported.front(),
                   unsupported.front());
  }
  auto parameters = read_parameters(request);
  if (!parameters) return std::unexpected(parameters.error());
  const auto prompts = read_prompts(engine, request, *parameters);
  if (!prompts) return std::unexpected(prompts.error());
  auto plan = plan_answer(engine.chat_template(), request, *parameters, prompts->chat);
  if (!plan) return std::unexpected(plan.error());
  std::unique_ptr<Generation> out(
      new Generation(engine, request.endpoint, std::move(*parameters), std::move(*plan), executor));
  if (auto submitted = out->submit(request, prompts->tokens); !submitted) return std::unexpected(submitted.error());
  return out;
}

Result<void> Generation::submit(const Request& request, std::span<const std::vector<Token>> prompts) {
  constexpr std::uint32_t most_choices = 128;
  const std::uint32_t choices = request.n.value_or(1);
  if (choices == 0 || choices * prompts.size() > most_choices) {
    return failure(ErrorCode::invalid_request, std::format("n must be 1 to {}", most_choices), "n");
  }
  is_whole_ = !request.stream;
  auto adapters = engine_.find_adapters(parameters_.adapters);
  if (!adapters) return std::unexpected(std::move(adapters.error()));
  if (parameters_.confidence) parameters_.sampling.top_logprobs = std::max(parameters_.sampling.top_logprobs, 2U);
  std::vector<GenerationRequest> wanted;
  for (const std::vector<Token>& prompt : prompts) {
    usage_.prompt_tokens += prompt.size();
    for (std::uint32_t choice = 0; choice < choices; ++choice) {
      auto one = choice_of(request, prompt, choice, wanted.size());
      if (!one) return std::unexpected(one.error());
      one->adapters = *adapters;
      wanted.push_back(std::move(*one));
    }
  }
  running_.resize(wanted.size());
  for (GenerationRequest& one : wanted) submitted_.add(std::move(one));
  return {};
}

Result<GenerationRequest> Generation::choice_of(const Request& request, const std::vector<Token>& prompt,
                                                std::uint32_t choice, std::size_t index) const {
  constexpr std::uint64_t usual_max_tokens = 1 << 20;  // the context ends it
  SamplingSettings sampling = parameters_.sampling;
  if (sampling.seed) *sampling.seed += choice;
  sampling.grammar = plan_.grammar;
  if (plan_.binds_calls_only) sampling.calls = plan_.form;
  auto chooser = make_chooser(engine_.vocabulary(), sampling, prompt);
  if (!chooser) return std::unexpected(chooser.error());
  GenerationRequest out;
  out.prompt = prompt;
  out.max_tokens =
      static_cast<std::uint32_t>(std::min(request.sampling.max_tokens.value_or(usual_max_tokens), usual_max_tokens));
  out.domain = parameters_.cache_domain;
  out.member = parameters_.member;
  out.priority = parameters_.priority;
  if (parameters_.deadline_ms > 0) {
    out.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(parameters_.deadline_ms);
  }
  out.drafting = parameters_.drafting;
  out.draft_channel = parameters_.draft_channel;
  out.task_class = parameters_.task_class;
  out.chooser = std::move(*chooser);
  out.sink = submitted_.sink(index, plan_.form, request.sampling.stop);
  return out;
}

ChoiceDelta Generation::delta_of(std::size_t choice, Piece piece) {
  Running& running = running_[choice];
  ChoiceDelta delta{.index = static_cast<std::uint32_t>(choice)};
  if (!std::exchange(running.begun, true) && endpoint_ == Endpoint::chat) delta.role = Role::assistant;
  if (parameters_.logprobs) {
    delta.logprobs = endpoint_ == Endpoint::chat
                         ? chat_logprobs(engine_.vocabulary(), piece.tokens)
                         : completion_logprobs(engine_.vocabulary(), piece.tokens, running.text_bytes);
  }
  if (parameters_.confidence && is_whole_) {
    running.chosen.insert(running.chosen.end(), piece.tokens.begin(), piece.tokens.end());
  } else if (parameters_.confidence) {
    delta.extra.emplace_back("confidence", confidence(piece.tokens));
  }
  if (parameters_.return_tokens) delta.extra.emplace_back("tokens", tokens_json(piece.tokens));
  running.text_bytes += piece.delta.content.size();
  running.has_called = running.has_called || !piece.delta.calls.empty();
  delta.tool_calls = std::move(piece.delta.calls);
  if (!piece.delta.reasoning.empty()) delta.reasoning = std::move(piece.delta.reasoning);
  const bool is_only_text = delta.tool_calls.empty() && !delta.reasoning;
  if (is_only_text || !piece.delta.content.empty()) delta.text = std::move(piece.delta.content);
  return delta;
}

void Generation::add_end(std::size_t choice, const Ended& ended, std::vector<Event>& events) {
  ChoiceDelta delta =
      running_[choice].begun ? ChoiceDelta{.index = static_cast<std::uint32_t>(choice)} : delta_of(choice, Piece{});
  delta.finish = finish_of(ended.reason, running_[choice].has_called);
  if (parameters_.confidence && is_whole_) {
    delta.extra.emplace_back("confidence", confidence(running_[choice].chosen));
  }
  events.emplace_back(std::move(delta));
  usage_.completion_tokens += ended.tokens;
  usage_.cached_tokens = usage_.cached_tokens.value_or(0) + ended.timings.cached_tokens;
  timings_ = ended.timings;
  if (++ended_ < running_.size()) return;
  UsageReport report{.usage = usage_, .answer_extra = {}};
  report.answer_extra.emplace_back("timings", timings_json(timings_, usage_));
  events.emplace_back(std::move(report));
  events.emplace_back(Done{});
}

void Generation::add_events(Addressed addressed, std::vector<Event>& events) {
  if (auto* piece = std::get_if<Piece>(&addressed.letter)) {
    events.emplace_back(delta_of(addressed.choice, std::move(*piece)));
  } else if (const auto* ended = std::get_if<Ended>(&addressed.letter)) {
    add_end(addressed.choice, *ended, events);
  } else if (auto* error = std::get_if<Error>(&addressed.letter)) {
    events.emplace_back(Failed{std::move(*error)});
  }
}

asio::awaitable<std::vector<Event>> Generation::next() {
  std::vector<Event> events;
  if (!std::exchange(started_, true)) events.emplace_back(Started{.model = engine_.options().name});
  while (true) {
    for (Addressed& addressed : co_await submitted_.receive()) {
      add_events(std::move(addressed), events);
      // One choice that failed ends the answer; destroying us cancels the others.
      if (!events.empty() && std::holds_alternative<Failed>(events.back())) co_return events;
    }
    if (events.size() > 1 || (!events.empty() && !std::holds_alternative<Started>(events.front()))) co_return events;
  }
}

}  // namespace molly::engine
