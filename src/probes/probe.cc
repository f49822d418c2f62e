#include "probes/probe.h"

#include <algorithm>

#include "probes/check.h"
#include "probes/random.h"

namespace molly::probes {

namespace {

// No right answer is near this long; what is longer is not parsed.
constexpr std::size_t longest_answer = 4096;

}  // namespace

const Family* find_family(std::string_view name) {
  const auto found = std::ranges::find(families(), name, &Family::name);
  return found == families().end() ? nullptr : &*found;
}

Part part_of(std::string_view family, std::string_view key) {
  Random mixed(hash_of(family) ^ hash_of(key));
  return mixed.below(10) == 0 ? Part::held_out : Part::train;
}

Task make_task(const Family& family, Language language, Part part, std::uint64_t seed) {
  Random random(Random(hash_of(family.name) ^ seed).next());
  while (true) {
    Draft draft = family.draw(random, language);
    if (part_of(family.name, draft.key) != part) continue;
    return {std::string(family.name), language, std::move(draft.key), std::move(draft.prompt), std::move(draft.answer)};
  }
}

bool is_right(const Task& task, std::string_view answer) {
  const Family* family = find_family(task.family);
  if (!family || answer.size() > longest_answer) return false;
  return family->accepts(task, trim(answer));
}

}  // namespace molly::probes
