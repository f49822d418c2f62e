#include <algorithm>
#include <string>

#include "probes/families/draws.h"
#include "probes/phrase.h"

namespace molly::probes {

namespace {

constexpr Phrases sums{{"What is {0} + {1}?", "{0} + {1} =", "Add {0} and {1}.", "Compute {0} plus {1}."},
                       {"¿Cuánto es {0} + {1}?", "{0} + {1} =", "Suma {0} y {1}.", "Calcula {0} más {1}."}};
constexpr Phrases differences{{"What is {0} - {1}?", "{0} - {1} =", "Subtract {1} from {0}.", "Compute {0} minus {1}."},
                              {"¿Cuánto es {0} - {1}?", "{0} - {1} =", "Resta {1} de {0}.", "Calcula {0} menos {1}."}};
constexpr Phrases products{{"What is {0} x {1}?", "{0} x {1} =", "Multiply {0} by {1}.", "Compute {0} times {1}."},
                           {"¿Cuánto es {0} x {1}?", "{0} x {1} =", "Multiplica {0} por {1}.", "Calcula {0} por {1}."}};

Draft calculation(Random& random, Language language, const Phrases& phrases, char sign, std::int64_t left,
                  std::int64_t right, std::int64_t result) {
  const auto [small, large] = std::minmax(left, right);
  const bool swaps = sign != '-';
  const std::string key = std::to_string(swaps ? small : left) + sign + std::to_string(swaps ? large : right);
  return {key, say(random, language, phrases, {std::to_string(left), std::to_string(right)}), std::to_string(result)};
}

// One `large` is `factor` times `small`. From small to large is asked only where tenths of the large come out whole.
struct Unit {
  std::string_view large;
  std::string_view small;
  std::int64_t factor;
  bool both_ways;
};
constexpr std::array unit_pairs{Unit{"km", "m", 1000, true},    Unit{"m", "cm", 100, true},
                                Unit{"cm", "mm", 10, true},     Unit{"kg", "g", 1000, true},
                                Unit{"l", "ml", 1000, true},    Unit{"t", "kg", 1000, true},
                                Unit{"h", "min", 60, false},    Unit{"min", "s", 60, false},
                                Unit{"EUR", "cent", 100, true}, Unit{"kW", "W", 1000, true}};
constexpr Phrases conversions{
    {"Convert {0} {1} to {2}.", "{0} {1} in {2}?", "How many {2} are {0} {1}?", "{0} {1} = ? {2}"},
    {"Convierte {0} {1} a {2}.", "¿{0} {1} en {2}?", "¿Cuántos {2} son {0} {1}?", "{0} {1} = ? {2}"}};

}  // namespace

Draft draw_arithmetic(Random& random, Language language) {
  const std::size_t kind = random.below(5);
  if (kind == 4) {
    const std::int64_t left = random.between(2, 12);
    const std::int64_t right = random.between(2, 12);
    return calculation(random, language, products, '*', left, right, left * right);
  }
  const std::int64_t most = random.below(2) == 0 ? 99 : 999;
  const std::int64_t left = random.between(1, most);
  if (kind < 2) {
    const std::int64_t right = random.between(1, most);
    return calculation(random, language, sums, '+', left, right, left + right);
  }
  const std::int64_t right = random.between(0, left);
  return calculation(random, language, differences, '-', left, right, left - right);
}

Draft draw_units(Random& random, Language language) {
  const Unit& unit = random.pick(unit_pairs);
  const std::int64_t count = random.between(1, 999);
  const bool to_small = random.below(3) != 0 || !unit.both_ways;
  const std::string given = to_small ? std::to_string(count) : std::to_string(count * unit.factor / 10);
  const std::string_view from = to_small ? unit.large : unit.small;
  const std::string_view to = to_small ? unit.small : unit.large;
  const std::string result = to_small ? std::to_string(count * unit.factor) : decimal(count, 1);
  return {fill("{0} {1}>{2}", {given, from, to}), say(random, language, conversions, {given, from, to}),
          fill("{0} {1}", {result, to})};
}

}  // namespace molly::probes
