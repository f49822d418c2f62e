#include <chrono>
#include <string>

#include "probes/families/draws.h"
#include "probes/phrase.h"

namespace molly::probes {

namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::array<Word, 12> months{{{"January", "enero"},
                                       {"February", "febrero"},
                                       {"March", "marzo"},
                                       {"April", "abril"},
                                       {"May", "mayo"},
                                       {"June", "junio"},
                                       {"July", "julio"},
                                       {"August", "agosto"},
                                       {"September", "septiembre"},
                                       {"October", "octubre"},
                                       {"November", "noviembre"},
                                       {"December", "diciembre"}}};
constexpr std::array<Word, 7> weekdays{{{"Sunday", "domingo"},
                                        {"Monday", "lunes"},
                                        {"Tuesday", "martes"},
                                        {"Wednesday", "miércoles"},
                                        {"Thursday", "jueves"},
                                        {"Friday", "viernes"},
                                        {"Saturday", "sábado"}}};

sys_days any_day(Random& random, int first_year, int last_year) {
  const sys_days first{std::chrono::year{first_year} / 1 / 1};
  const sys_days last{std::chrono::year{last_year} / 12 / 31};
  return first + std::chrono::days{random.between(0, (last - first).count())};
}

std::string two_digits(unsigned number) { return (number < 10 ? "0" : "") + std::to_string(number); }

std::string iso(sys_days day) {
  const year_month_day date{day};
  return std::to_string(static_cast<int>(date.year())) + "-" + two_digits(static_cast<unsigned>(date.month())) + "-" +
         two_digits(static_cast<unsigned>(date.day()));
}

// 0: day; 1: month in words; 2: year; 3: day and 4: month of two digits
constexpr Phrases dates_in_words{{"Write {0} {1} {2} as YYYY-MM-DD.", "{1} {0}, {2} in ISO form?",
                                  "ISO date of {0} {1} {2}:", "Turn {3}/{4}/{2} (day/month/year) into an ISO date."},
                                 {"Escribe {0} de {1} de {2} como AAAA-MM-DD.", "¿{0} de {1} de {2} en forma ISO?",
                                  "Fecha ISO del {0} de {1} de {2}:", "Pasa {3}/{4}/{2} (día/mes/año) a fecha ISO."}};
constexpr Phrases additions{{"What date is {1} days after {0}?", "{0} plus {1} days?", "Add {1} days to {0}.",
                             "Due {1} days from {0}. Which date is that?"},
                            {"¿Qué fecha es {1} días después de {0}?", "¿{0} más {1} días?", "Suma {1} días a {0}.",
                             "Vence {1} días después del {0}. ¿Qué fecha es?"}};
constexpr Phrases weekday_questions{
    {"What weekday is {0}?", "Day of the week of {0}:", "On which day of the week does {0} fall?", "{0} is a"},
    {"¿Qué día de la semana es {0}?", "Día de la semana de {0}:", "¿En qué día de la semana cae {0}?", "{0} es"}};

}  // namespace

Draft draw_iso_date(Random& random, Language language) {
  const sys_days day = any_day(random, 1990, 2039);
  const year_month_day date{day};
  const auto of_month = static_cast<unsigned>(date.day());
  const auto month = static_cast<unsigned>(date.month());
  const std::string prompt =
      say(random, language, dates_in_words,
          {std::to_string(of_month), months[month - 1].in(language), std::to_string(static_cast<int>(date.year())),
           two_digits(of_month), two_digits(month)});
  return {iso(day), prompt, iso(day)};
}

Draft draw_add_days(Random& random, Language language) {
  const sys_days day = any_day(random, 2000, 2039);
  const std::int64_t count = random.between(2, 30);
  const std::string from = iso(day);
  const std::string days = std::to_string(count);
  return {from + "+" + days, say(random, language, additions, {from, days}), iso(day + std::chrono::days{count})};
}

Draft draw_weekday(Random& random, Language language) {
  const sys_days day = any_day(random, 2020, 2031);
  const std::string date = iso(day);
  const unsigned weekday = std::chrono::weekday{day}.c_encoding();
  return {date, say(random, language, weekday_questions, {date}), std::string(weekdays[weekday].in(language))};
}

}  // namespace molly::probes
