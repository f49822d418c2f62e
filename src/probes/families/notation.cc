#include <string>

#include "probes/families/draws.h"
#include "probes/names.h"

// Two notations that exist nowhere else, so that no model can know them before it is taught:
//
//   Zolt, tickets:  z/482!!~ana.LIM      number, urgency (!! urgent, ! normal, ? low), person, city
//   Tarn, events:   [door+|1405|an]      thing, what happened (+ opened, - closed, x broke), time, person's two letters
namespace molly::probes {

namespace {

struct Mark {
  Word word;
  std::string_view sign;
};
constexpr std::array urgencies{Mark{{"urgent", "urgente"}, "!!"}, Mark{{"normal", "normal"}, "!"},
                               Mark{{"low", "baja"}, "?"}};
constexpr std::array happenings{Mark{{"opened", "abierto"}, "+"}, Mark{{"closed", "cerrado"}, "-"},
                                Mark{{"broken", "roto"}, "x"}};
constexpr std::array<Word, 10> things{{{"door", "puerta"},
                                       {"gate", "portal"},
                                       {"valve", "llave"},
                                       {"box", "caja"},
                                       {"safe", "cofre"},
                                       {"window", "ventana"},
                                       {"lock", "cerrojo"},
                                       {"tank", "tanque"},
                                       {"shop", "tienda"},
                                       {"port", "puerto"}}};

constexpr Phrases tickets{
    {"Zolt line: ticket {0}, {1}, {2}, {3}", "Write in Zolt: ticket {0}, {1}, for {2} in {3}",
     "Ticket {0} ({1}) of {2}, {3}. In Zolt:", "To Zolt: number {0}, urgency {1}, person {2}, city {3}"},
    {"Línea Zolt: tique {0}, {1}, {2}, {3}", "Escribe en Zolt: tique {0}, {1}, para {2} en {3}",
     "Tique {0} ({1}) de {2}, {3}. En Zolt:", "A Zolt: número {0}, urgencia {1}, persona {2}, ciudad {3}"}};
constexpr Phrases events{{"Tarn entry: {0} {1} at {2} by {3}", "Write in Tarn: {0}, {1}, {2}, {3}",
                          "{2}: {0} {1} ({3}). In Tarn:", "To Tarn: {3}, {2}, {0}, {1}"},
                         {"Entrada Tarn: {0} {1} a las {2} por {3}", "Escribe en Tarn: {0}, {1}, {2}, {3}",
                          "{2}: {0} {1} ({3}). En Tarn:", "A Tarn: {3}, {2}, {0}, {1}"}};

std::string two_digits(std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

Draft draw_zolt(Random& random, Language language) {
  const std::string number = std::to_string(random.between(100, 999));
  const Mark& urgency = random.pick(urgencies);
  const std::string_view name = random.pick(names);
  const std::string_view city = random.pick(cities);
  const std::string answer = fill("z/{0}{1}~{2}.{3}", {number, urgency.sign, lower(name), upper(city.substr(0, 3))});
  return {fill("{0}{1}{2} {3}", {number, urgency.sign, name, city}),
          say(random, language, tickets, {number, urgency.word.in(language), name, city}), answer};
}

Draft draw_tarn(Random& random, Language language) {
  const Word& thing = random.pick(things);
  const Mark& happening = random.pick(happenings);
  const std::string hour = two_digits(random.between(0, 23));
  const std::string minute = two_digits(random.between(0, 59));
  const std::string_view name = random.pick(names);
  const std::string answer =
      fill("[{0}{1}|{2}{3}|{4}]", {thing.in(language), happening.sign, hour, minute, lower(name.substr(0, 2))});
  return {fill("{0}{1}{2}:{3} {4}", {thing.english, happening.sign, hour, minute, name}),
          say(random, language, events, {thing.in(language), happening.word.in(language), hour + ":" + minute, name}),
          answer};
}

}  // namespace molly::probes
