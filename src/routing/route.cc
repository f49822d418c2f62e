#include "routing/route.h"

#include <algorithm>
#include <tuple>

namespace molly::routing {
namespace {

void add_needs_of(const ContentPart& part, Modalities& needs) {
  if (std::holds_alternative<ImagePart>(part.value)) needs.image = true;
  if (std::holds_alternative<AudioPart>(part.value)) needs.audio = true;
  if (std::holds_alternative<FilePart>(part.value)) needs.file = true;
}

std::optional<std::size_t> rank_in(const Selection& selection, std::string_view name) {
  if (selection.automatic) return 0;
  const auto found = std::ranges::find(selection.names, name);
  if (found == selection.names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - selection.names.begin());
}

Fit context_fit(const TargetDescription& target, const CapabilityProfile& profile) {
  if (!target.context_length) return Fit::unknown_context;
  // max_tokens is a ceiling, not a wish for that many: an answer may end earlier with finish_reason "length".
  return fits_context(profile.token_upper_bound, 1, *target.context_length) ? Fit::fits : Fit::count_needed;
}

Fit fit_of(const TargetView& view, const Selection& selection, const CapabilityProfile& profile) {
  const TargetDescription& target = *view.description;
  if (!rank_in(selection, target.name)) return Fit::not_selected;
  if (!view.cleared) return Fit::not_cleared;
  if (profile.needs.image && !target.modalities.image) return Fit::lacks_image;
  if (profile.needs.audio && !target.modalities.audio) return Fit::lacks_audio;
  if (profile.needs.file && !target.modalities.file) return Fit::lacks_file;
  if (profile.needs_tools && !target.tools) return Fit::lacks_tools;
  return context_fit(target, profile);
}

bool is_candidate(Fit fit) { return fit == Fit::fits || fit == Fit::unknown_context || fit == Fit::count_needed; }

std::int64_t total_price(const TargetDescription& target) {
  return target.price ? target.price->input_micros_per_million + target.price->output_micros_per_million : 0;
}

}  // namespace

CapabilityProfile capability_profile(const Request& request, std::uint64_t token_upper_bound) {
  CapabilityProfile profile;
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content.parts) add_needs_of(part, profile.needs);
  }
  profile.needs_tools = !request.tools.empty();
  profile.token_upper_bound = token_upper_bound;
  profile.max_tokens = request.sampling.max_tokens.value_or(0);
  return profile;
}

bool fits_context(std::uint64_t prompt_tokens, std::uint64_t max_tokens, std::uint32_t context_length) {
  // An answer needs room for one token at least.
  const std::uint64_t answer = std::max<std::uint64_t>(max_tokens, 1);
  return prompt_tokens <= context_length && answer <= context_length - prompt_tokens;
}

Route choose(std::span<const TargetView> targets, const Selection& selection, const CapabilityProfile& profile) {
  Route route;
  for (std::uint32_t i = 0; i < targets.size(); ++i) {
    const Fit fit = fit_of(targets[i], selection, profile);
    if (is_candidate(fit)) {
      route.candidates.push_back({i, fit, targets[i].health});
    } else {
      route.rejections.push_back({i, fit});
    }
  }
  const auto order = [&](const Candidate& c) {
    const TargetDescription& target = *targets[c.target].description;
    return std::tuple(rank_in(selection, target.name).value_or(0), c.health, c.fit == Fit::count_needed, target.tier,
                      total_price(target), c.target);
  };
  std::ranges::sort(route.candidates, {}, order);
  return route;
}

std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::fits: return "fits";
    case Fit::unknown_context: return "context length unknown";
    case Fit::count_needed: return "exact token count needed";
    case Fit::not_selected: return "not the model asked for";
    case Fit::not_cleared: return "excluded by policy";
    case Fit::lacks_image: return "does not take images";
    case Fit::lacks_audio: return "does not take audio";
    case Fit::lacks_file: return "does not take files";
    case Fit::lacks_tools: return "does not call tools";
  }
  return "excluded by policy";
}

}  // namespace molly::routing
