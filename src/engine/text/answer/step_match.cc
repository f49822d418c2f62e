#include "engine/text/answer/step_match.h"

#include <algorithm>

#include "base/json_writer.h"
#include "engine/text/partial_text.h"

namespace molly::engine {
namespace {

using Outcome = StepMatch::Outcome;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

StepMatch better(const StepMatch& one, const StepMatch& other) { return other.outcome > one.outcome ? other : one; }

class Matching {
 public:
  Matching(std::string_view text, std::span<const std::string> tools) : text_(text), tools_(tools) {}

  // `so_far` is what was passed already.
  StepMatch match(std::span<const Step> steps, StepMatch so_far) const {
    if (steps.empty()) return {Outcome::whole, so_far.length, so_far.tool};
    const Step& step = steps.front();
    const auto later = steps.subspan(1);
    switch (step.kind) {
      case Step::Kind::space: return match(later, after_space(so_far));
      case Step::Kind::text: return literal(step.text, later, so_far);
      case Step::Kind::quoted_name:
      case Step::Kind::plain_name: return name(step.kind, later, so_far);
      case Step::Kind::word: return word(later, so_far);
      case Step::Kind::optional: break;
    }
    Steps taken = step.group;
    taken.insert(taken.end(), later.begin(), later.end());
    return better(match(taken, so_far), match(later, so_far));
  }

 private:
  StepMatch after_space(StepMatch so_far) const {
    so_far.length = std::min(text_.find_first_not_of(white_space, so_far.length), text_.size());
    return so_far;
  }

  StepMatch literal(std::string_view wanted, std::span<const Step> later, StepMatch so_far) const {
    const std::string_view there = text_.substr(so_far.length, wanted.size());
    if (!wanted.starts_with(there)) return {};
    if (there.size() < wanted.size()) return {Outcome::partial, 0, so_far.tool};
    so_far.length += wanted.size();
    return match(later, so_far);
  }

  StepMatch name(Step::Kind kind, std::span<const Step> later, const StepMatch& so_far) const {
    StepMatch best;
    for (const std::string& tool : tools_) {
      const std::string spelled = kind == Step::Kind::quoted_name ? base::json_string(tool) : tool;
      const bool whole = text_.substr(so_far.length).starts_with(spelled);
      best = better(best, literal(spelled, later, {Outcome::no, so_far.length, whole ? &tool : nullptr}));
    }
    return best;
  }

  StepMatch word(std::span<const Step> later, StepMatch so_far) const {
    const std::size_t start = so_far.length;
    while (so_far.length < text_.size() && is_word_character(text_[so_far.length])) ++so_far.length;
    if (so_far.length == text_.size()) return {Outcome::partial, 0, so_far.tool};
    return so_far.length == start ? StepMatch{} : match(later, so_far);
  }

  std::string_view text_;
  std::span<const std::string> tools_;
};

}  // namespace

StepMatch match_steps(std::span<const Step> steps, std::string_view text, std::span<const std::string> tools) {
  return Matching(text, tools).match(steps, {});
}

}  // namespace molly::engine
