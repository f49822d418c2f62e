#include <algorithm>
#include <string>
#include <vector>

#include "probes/families/draws.h"
#include "probes/names.h"

namespace molly::probes {

namespace {

constexpr Phrases uppers{
    {"Write {0} in upper case.", "{0} in capitals:", "Upper case of {0}?", "Make {0} upper case."},
    {"Escribe {0} en mayúsculas.", "{0} en mayúsculas:", "¿Mayúsculas de {0}?", "Pasa {0} a mayúsculas."}};
constexpr Phrases reversals{
    {"Reverse {0}.", "{0} backwards:", "Write {0} from back to front.", "What is {0} reversed?"},
    {"Invierte {0}.", "{0} al revés:", "Escribe {0} de atrás hacia delante.", "¿Cómo es {0} al revés?"}};
constexpr Phrases places{
    {"Letter {1} of {0}?", "What is letter number {1} of {0}?", "Give letter {1} of {0}.", "{0}: letter {1}"},
    {"¿Letra {1} de {0}?", "¿Cuál es la letra número {1} de {0}?", "Da la letra {1} de {0}.", "{0}: letra {1}"}};
constexpr Phrases counts{
    {"How many {1} are in {0}?", "Count the letter {1} in {0}.", "How often is {1} in {0}?", "{0}: number of {1}"},
    {"¿Cuántas {1} hay en {0}?", "Cuenta la letra {1} en {0}.", "¿Cuántas veces está {1} en {0}?",
     "{0}: número de {1}"}};
constexpr Phrases initials{
    {"Initials of {0}?", "Give the initials of {0}.", "{0}: initials", "What are the initials of {0}?"},
    {"¿Iniciales de {0}?", "Da las iniciales de {0}.", "{0}: iniciales", "¿Cuáles son las iniciales de {0}?"}};

// Words that no list holds, so that there are enough of them: consonant and vowel in turn.
std::string syllables(Random& random, std::size_t count) {
  constexpr std::string_view consonants = "bcdfglmnprstvz";
  constexpr std::string_view vowels = "aeiou";
  std::string word;
  for (; count > 0; --count) {
    word += random.pick(consonants);
    word += random.pick(vowels);
  }
  return word;
}

}  // namespace

Draft draw_letters(Random& random, Language language) {
  const std::string word = syllables(random, 2 + random.below(2));
  switch (random.below(4)) {
    case 0: return {"upper " + word, say(random, language, uppers, {word}), upper(word)};
    case 1:
      return {"reverse " + word, say(random, language, reversals, {word}), std::string(word.rbegin(), word.rend())};
    case 2: {
      const std::size_t place = random.below(word.size());
      const std::string number = std::to_string(place + 1);
      return {"place " + word + number, say(random, language, places, {word, number}), word.substr(place, 1)};
    }
    default: {
      const std::string letter(1, random.pick(word));
      const auto count = std::ranges::count(word, letter.front());
      return {"count " + word + letter, say(random, language, counts, {word, letter}), std::to_string(count)};
    }
  }
}

Draft draw_initials(Random& random, Language language) {
  std::string name(random.pick(names));
  std::string letters = name.substr(0, 1);
  for (std::size_t more = 1 + random.below(2); more > 0; --more) {
    const std::string_view surname = random.pick(surnames);
    name += " ";
    name += surname;
    letters += surname.front();
  }
  return {name, say(random, language, initials, {name}), letters};
}

}  // namespace molly::probes
