#include <string>

#include "probes/families/draws.h"
#include "probes/phrase.h"

namespace molly::probes {

namespace {

constexpr Phrases interests{
    {"Simple interest on {0} at {1}% for {2} years?", "{0} at {1}% a year, {2} years: simple interest?",
     "Find the simple interest: principal {0}, rate {1}%, years {2}.",
     "How much simple interest do {0} earn in {2} years at {1}%?"},
    {"¿Interés simple de {0} al {1}% en {2} años?", "{0} al {1}% anual, {2} años: ¿interés simple?",
     "Calcula el interés simple: capital {0}, tasa {1}%, años {2}.",
     "¿Cuánto interés simple dan {0} en {2} años al {1}%?"}};
constexpr Phrases changes{
    {"Percent change from {0} to {1}?", "It went from {0} to {1}. By how many percent?",
     "Change in percent: {0} -> {1}", "The price was {0} and is now {1}. Change in percent?"},
    {"¿Cambio porcentual de {0} a {1}?", "Pasó de {0} a {1}. ¿En qué porcentaje?", "Cambio en porcentaje: {0} -> {1}",
     "El precio era {0} y ahora es {1}. ¿Cambio en porcentaje?"}};
constexpr Phrases exchanges{
    {"1 {0} = {2} {1}. How much is {3} {0} in {1}?", "Rate: 1 {0} = {2} {1}. Convert {3} {0}.",
     "At {2} {1} per {0}, {3} {0} are", "{3} {0} in {1} at a rate of {2}?"},
    {"1 {0} = {2} {1}. ¿Cuánto son {3} {0} en {1}?", "Cambio: 1 {0} = {2} {1}. Convierte {3} {0}.",
     "A {2} {1} por {0}, {3} {0} son", "¿{3} {0} en {1} a un cambio de {2}?"}};
constexpr std::array<std::string_view, 8> currencies{"EUR", "USD", "GBP", "CHF", "PEN", "MXN", "BRL", "CAD"};

}  // namespace

Draft draw_interest(Random& random, Language language) {
  const std::int64_t hundreds = random.between(1, 99);
  const std::int64_t rate = random.between(1, 12);
  const std::int64_t years = random.between(2, 6);
  const std::string principal = std::to_string(hundreds * 100);
  const std::string percent = std::to_string(rate);
  const std::string duration = std::to_string(years);
  return {fill("{0}*{1}%*{2}", {principal, percent, duration}),
          say(random, language, interests, {principal, percent, duration}), std::to_string(hundreds * rate * years)};
}

Draft draw_percent_change(Random& random, Language language) {
  const std::int64_t before = random.between(1, 100) * 20;
  std::int64_t fives = random.between(-19, 19);
  if (fives == 0) fives = 20;
  const std::string from = std::to_string(before);
  const std::string to = std::to_string(before + before * fives / 20);
  return {from + ">" + to, say(random, language, changes, {from, to}), std::to_string(fives * 5) + "%"};
}

Draft draw_exchange(Random& random, Language language) {
  const std::vector<std::size_t> pair = distinct(random, currencies.size(), 2);
  const std::int64_t tenths = random.between(2, 59);
  const std::int64_t amount = random.between(2, 50);
  const std::string rate = decimal(tenths, 1);
  const std::string given = std::to_string(amount);
  const std::string_view from = currencies[pair[0]];
  const std::string_view to = currencies[pair[1]];
  return {fill("{0}{1}>{2}@{3}", {given, from, to, rate}), say(random, language, exchanges, {from, to, rate, given}),
          fill("{0} {1}", {decimal(tenths * amount, 1), to})};
}

}  // namespace molly::probes
