#include <algorithm>
#include <string>

#include "probes/families/draws.h"
#include "probes/names.h"

namespace molly::probes {

namespace {

struct Form {
  Word description;  // {0} is the number
  std::string_view directive;
};
constexpr std::array forms{
    Form{{"an integer padded with zeros to {0}", "un entero con ceros hasta {0}"}, "%0{0}d"},
    Form{{"an integer of width {0}", "un entero de ancho {0}"}, "%{0}d"},
    Form{{"a text of width {0}", "un texto de ancho {0}"}, "%{0}s"},
    Form{{"a text of width {0}, to the left", "un texto de ancho {0}, a la izquierda"}, "%-{0}s"},
    Form{{"a number with {0} decimals", "un número con {0} decimales"}, "%.{0}f"},
    Form{{"a hex number padded with zeros to {0}", "un hexadecimal con ceros hasta {0}"}, "%0{0}x"}};
constexpr std::array<std::string_view, 5> signs{"=", ":", "#", "/", "-"};
constexpr Phrases formats{{"printf format: {0}{1} and {2}", "Format for printf: {0}{1}, then {2}",
                           "printf: write {0}{1} followed by {2}", "{0}{1} and {2}. printf format:"},
                          {"Formato printf: {0}{1} y {2}", "Formato para printf: {0}{1}, luego {2}",
                           "printf: escribe {0}{1} seguido de {2}", "{0}{1} y {2}. Formato printf:"}};

// The flags behind % in order, and i as d: equal formats get one spelling.
std::string canonical_format(std::string_view format) {
  std::string text;
  while (!format.empty()) {
    const std::size_t flags = format.front() == '%' ? 1 : 0;
    const std::size_t width = std::min(format.find_first_not_of("-0 +#", flags), format.size());
    if (flags == 0) {
      text += format.front();
      format.remove_prefix(1);
      continue;
    }
    const std::size_t conversion = std::min(format.find_first_not_of("0123456789.", width), format.size());
    std::string sorted(format.substr(1, width - 1));
    std::ranges::sort(sorted);
    text += "%" + sorted;
    text += format.substr(width, conversion - width);
    if (conversion < format.size()) text += format[conversion] == 'i' ? 'd' : format[conversion];
    format.remove_prefix(std::min(conversion + 1, format.size()));
  }
  return text;
}

}  // namespace

Draft draw_printf(Random& random, Language language) {
  const std::string label = lower(random.pick(names));
  const std::string_view sign = random.pick(signs);
  const Form& form = random.pick(forms);
  const std::string number = std::to_string(random.between(2, 9));
  const std::string answer = label + std::string(sign) + fill(form.directive, {number});
  return {answer, say(random, language, formats, {label, sign, fill(form.description.in(language), {number})}), answer};
}

bool accepts_printf(const Task& task, std::string_view answer) {
  if (answer.size() >= 2 && answer.starts_with('"') && answer.ends_with('"'))
    answer = answer.substr(1, answer.size() - 2);
  return canonical_format(answer) == canonical_format(task.answer);
}

}  // namespace molly::probes
