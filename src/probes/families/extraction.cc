#include <string>

#include "probes/families/draws.h"
#include "probes/names.h"

namespace molly::probes {

namespace {

// 0: name, 1: address, 2: amount, 3: date, 4: city
constexpr Phrases sentences{{"{0} ({1}) paid {2} on {3} in {4}.", "On {3} {0} sent {2} to {4}; reply to {1}.",
                             "Invoice of {3}: {2}, {0}, {4}, {1}.", "Write to {1}: {0} owes {2} since {3}."},
                            {"{0} ({1}) pagó {2} el {3} en {4}.", "El {3} {0} envió {2} a {4}; responder a {1}.",
                             "Factura del {3}: {2}, {0}, {4}, {1}.", "Escribe a {1}: {0} debe {2} desde {3}."}};
constexpr Phrases questions{{"{0}\nWhich {1}?", "Find the {1}: {0}", "{0} Extract the {1}.", "{1}? {0}"},
                            {"{0}\n¿Qué {1}?", "Busca {1}: {0}", "{0} Extrae {1}.", "¿{1}? {0}"}};
constexpr std::array<Word, 3> asked_for{{{"amount", "importe"}, {"date", "fecha"}, {"e-mail", "correo"}}};
constexpr std::array<std::string_view, 4> currencies{"EUR", "USD", "GBP", "PEN"};
constexpr std::array<std::string_view, 6> endings{"com", "org", "net", "es", "pe", "eu"};

std::string two_digits(std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

std::string amount_of(Random& random) {
  const std::string whole = std::to_string(random.between(1, 999));
  const std::string cents = two_digits(random.between(0, 99));
  return fill("{0}.{1} {2}", {whole, cents, random.pick(currencies)});
}

std::string date_of(Random& random) {
  const std::string year = std::to_string(random.between(2000, 2039));
  const std::string month = two_digits(random.between(1, 12));
  return fill("{0}-{1}-{2}", {year, month, two_digits(random.between(1, 28))});
}

std::string address_of(Random& random, std::string_view name) {
  const std::string_view surname = random.pick(surnames);
  const std::string host = lower(random.pick(cities));
  return fill("{0}.{1}@{2}.{3}", {lower(name), lower(surname), host, random.pick(endings)});
}

}  // namespace

Draft draw_extraction(Random& random, Language language) {
  const std::string_view name = random.pick(names);
  const std::string address = address_of(random, name);
  const std::string amount = amount_of(random);
  const std::string date = date_of(random);
  const std::string sentence = say(random, language, sentences, {name, address, amount, date, random.pick(cities)});
  const std::size_t asked = random.below(asked_for.size());
  const std::array<std::string, 3> facts{amount, date, address};
  return {fill("{0} {1} {2} {3}", {asked_for[asked].english, amount, date, address}),
          say(random, language, questions, {sentence, asked_for[asked].in(language)}), facts[asked]};
}

}  // namespace molly::probes
