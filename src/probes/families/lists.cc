#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "probes/families/draws.h"
#include "probes/names.h"

namespace molly::probes {

namespace {

constexpr Phrases ascending{{"Sort from small to large: {0}", "Put in ascending order: {0}", "Sort these numbers: {0}",
                             "{0}\nIn ascending order:"},
                            {"Ordena de menor a mayor: {0}", "Pon en orden ascendente: {0}",
                             "Ordena estos números: {0}", "{0}\nEn orden ascendente:"}};
constexpr Phrases descending{{"Sort from large to small: {0}", "Put in descending order: {0}",
                              "Sort these numbers, largest first: {0}", "{0}\nIn descending order:"},
                             {"Ordena de mayor a menor: {0}", "Pon en orden descendente: {0}",
                              "Ordena estos números, primero el mayor: {0}", "{0}\nEn orden descendente:"}};
constexpr Phrases alphabetical{
    {"Sort by alphabet: {0}", "Put in alphabetical order: {0}", "Sort these names: {0}", "{0}\nIn alphabetical order:"},
    {"Ordena por alfabeto: {0}", "Pon en orden alfabético: {0}", "Ordena estos nombres: {0}",
     "{0}\nEn orden alfabético:"}};
constexpr Phrases repetitions{{"Remove duplicates: {0}", "Each only once, in the same order: {0}",
                               "Drop what is repeated: {0}", "{0}\nWithout duplicates:"},
                              {"Quita los duplicados: {0}", "Cada uno una sola vez, en el mismo orden: {0}",
                               "Elimina lo repetido: {0}", "{0}\nSin duplicados:"}};

std::vector<std::string> some_names(Random& random, std::size_t count) {
  std::vector<std::string> items;
  for (const std::size_t index : distinct(random, names.size(), count)) items.emplace_back(names[index]);
  return items;
}

std::vector<std::string> some_numbers(Random& random, std::size_t count) {
  std::vector<std::string> items;
  for (const std::size_t index : distinct(random, 99, count)) items.push_back(std::to_string(index + 1));
  return items;
}

Draft sort_names(Random& random, Language language) {
  std::vector<std::string> items = some_names(random, 3 + random.below(2));
  const std::string given = join(items, ", ");
  std::ranges::sort(items);
  std::string sorted = join(items, ", ");
  return {"a:" + sorted, say(random, language, alphabetical, {given}), sorted};
}

}  // namespace

Draft draw_sorting(Random& random, Language language) {
  const std::size_t kind = random.below(3);
  if (kind == 2) return sort_names(random, language);
  std::vector<std::string> items = some_numbers(random, 3 + random.below(3));
  const std::string given = join(items, ", ");
  std::ranges::sort(items, std::less{}, [](const std::string& item) { return std::stoi(item); });
  if (kind == 1) std::ranges::reverse(items);
  std::string sorted = join(items, ", ");
  return {(kind == 0 ? "<:" : ">:") + sorted, say(random, language, kind == 0 ? ascending : descending, {given}),
          sorted};
}

Draft draw_duplicates(Random& random, Language language) {
  const std::size_t count = 2 + random.below(3);
  const std::vector<std::string> items = random.below(2) == 0 ? some_names(random, count) : some_numbers(random, count);
  std::vector<std::string> repeated = items;
  for (std::size_t extra = 1 + random.below(2); extra > 0; --extra) {
    const std::string& again = random.pick(items);
    const auto first = std::ranges::find(repeated, again) - repeated.begin();
    const auto place = random.between(first + 1, static_cast<std::int64_t>(repeated.size()));
    repeated.insert(repeated.begin() + place, again);
  }
  const std::string given = join(repeated, ", ");
  return {given, say(random, language, repetitions, {given}), join(items, ", ")};
}

}  // namespace molly::probes
