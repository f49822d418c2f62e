#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "probes/check.h"
#include "probes/families/draws.h"
#include "probes/names.h"
#include "probes/query.h"

namespace molly::probes {

namespace {

struct Schema {
  Word name;
  std::array<Word, 2> texts;  // the first holds names of people, the second cities
  std::array<Word, 2> numbers;
};
constexpr std::array schemas{
    Schema{
        {"people", "personas"}, {{{"name", "nombre"}, {"city", "ciudad"}}}, {{{"age", "edad"}, {"height", "altura"}}}},
    Schema{
        {"orders", "pedidos"}, {{{"client", "cliente"}, {"city", "ciudad"}}}, {{{"total", "total"}, {"day", "dia"}}}},
    Schema{{"staff", "personal"},
           {{{"name", "nombre"}, {"office", "oficina"}}},
           {{{"salary", "sueldo"}, {"floor", "piso"}}}},
    Schema{{"trips", "viajes"}, {{{"driver", "chofer"}, {"goal", "destino"}}}, {{{"km", "km"}, {"price", "precio"}}}},
    Schema{{"pets", "mascotas"}, {{{"owner", "amo"}, {"city", "ciudad"}}}, {{{"weight", "peso"}, {"age", "edad"}}}},
    Schema{
        {"houses", "casas"}, {{{"owner", "amo"}, {"town", "pueblo"}}}, {{{"price", "precio"}, {"rooms", "cuartos"}}}}};

enum class Form : std::uint8_t { above, below, in_city, count_above, largest_in, ordered };
constexpr std::size_t form_count = 6;

// 0: table with its columns, 1: what is selected, 2: column of the condition, 3: value
constexpr std::array<Phrases, form_count> questions{{
    {{"{0} SQL: {1} where {2} is over {3}", "{0} Query: {1} with {2} above {3}",
      "{0} SELECT the {1} whose {2} is more than {3}.", "SQL on {0} {1} with {2} greater than {3}"},
     {"{0} SQL: {1} donde {2} pasa de {3}", "{0} Consulta: {1} con {2} sobre {3}",
      "{0} SELECT de {1} cuyo {2} es más de {3}.", "SQL en {0} {1} con {2} mayor que {3}"}},
    {{"{0} SQL: {1} where {2} is under {3}", "{0} Query: {1} with {2} below {3}",
      "{0} SELECT the {1} whose {2} is less than {3}.", "SQL on {0} {1} with {2} smaller than {3}"},
     {"{0} SQL: {1} donde {2} no llega a {3}", "{0} Consulta: {1} con {2} bajo {3}",
      "{0} SELECT de {1} cuyo {2} es menos de {3}.", "SQL en {0} {1} con {2} menor que {3}"}},
    {{"{0} SQL: {1} where {2} is {3}", "{0} Query: {1} with {2} {3}", "{0} SELECT the {1} whose {2} is {3}.",
      "SQL on {0} {1} with {2} equal to {3}"},
     {"{0} SQL: {1} donde {2} es {3}", "{0} Consulta: {1} con {2} {3}", "{0} SELECT de {1} cuyo {2} es {3}.",
      "SQL en {0} {1} con {2} igual a {3}"}},
    {{"{0} SQL: how many have {2} over {3}?", "{0} Query: count those with {2} above {3}",
      "{0} SELECT the number of rows whose {2} is more than {3}.", "SQL on {0} how many with {2} greater than {3}?"},
     {"{0} SQL: ¿cuántos tienen {2} sobre {3}?", "{0} Consulta: cuenta los de {2} mayor que {3}",
      "{0} SELECT del número de filas cuyo {2} es más de {3}.", "SQL en {0} ¿cuántos con {2} mayor que {3}?"}},
    {{"{0} SQL: largest {1} where {2} is {3}", "{0} Query: highest {1} with {2} {3}",
      "{0} SELECT the maximum {1} whose {2} is {3}.", "SQL on {0} maximum {1} with {2} equal to {3}"},
     {"{0} SQL: mayor {1} donde {2} es {3}", "{0} Consulta: {1} más alto con {2} {3}",
      "{0} SELECT del máximo {1} cuyo {2} es {3}.", "SQL en {0} máximo {1} con {2} igual a {3}"}},
    {{"{0} SQL: first {3} {1} by {2}", "{0} Query: {1} in order of {2}, only {3}",
      "{0} SELECT the {3} {1} of lowest {2}.", "SQL on {0} {3} {1}, lowest {2} first"},
     {"{0} SQL: primeros {3} {1} por {2}", "{0} Consulta: {1} en orden de {2}, solo {3}",
      "{0} SELECT de {3} {1} de menor {2}.", "SQL en {0} {3} {1}, primero menor {2}"}},
}};
constexpr std::array<std::string_view, form_count> queries{
    "SELECT {1} FROM {0} WHERE {2} > {3}",        "SELECT {1} FROM {0} WHERE {2} < {3}",
    "SELECT {1} FROM {0} WHERE {2} = '{3}'",      "SELECT COUNT(*) FROM {0} WHERE {2} > {3}",
    "SELECT MAX({1}) FROM {0} WHERE {2} = '{3}'", "SELECT {1} FROM {0} ORDER BY {2} LIMIT {3}"};

struct Choice {
  const Schema* schema;
  Form form;
  Word selected;
  Word condition;
  std::string value;
};

Choice choose(Random& random) {
  const Schema& schema = random.pick(schemas);
  const Form form = static_cast<Form>(random.below(form_count));
  const bool on_text = form == Form::in_city || form == Form::largest_in;
  const std::size_t text = random.below(2);
  const std::size_t number = random.below(2);
  Choice choice{&schema, form, schema.texts[text], schema.numbers[number], std::to_string(random.between(2, 99))};
  if (form == Form::ordered) choice.value = std::to_string(random.between(2, 30));
  if (!on_text) return choice;
  choice.selected = schema.numbers[number];
  choice.condition = schema.texts[text];
  choice.value = text == 0 ? random.pick(names) : random.pick(cities);
  return choice;
}

std::string columns_of(const Schema& schema, Language language) {
  return fill("{0}({1}, {2}, {3}, {4}):",
              {schema.name.in(language), schema.texts[0].in(language), schema.texts[1].in(language),
               schema.numbers[0].in(language), schema.numbers[1].in(language)});
}

std::string query_of(const Choice& choice, Language language) {
  return fill(
      queries[static_cast<std::size_t>(choice.form)],
      {choice.schema->name.in(language), choice.selected.in(language), choice.condition.in(language), choice.value});
}

// The table that a task's own query reads; null: none.
const Schema* schema_of(const Task& task) {
  const auto found = std::ranges::find_if(schemas, [&](const Schema& schema) {
    const std::string from = fill(" FROM {0} ", {schema.name.in(task.language)});
    return task.answer.contains(from);
  });
  return found == schemas.end() ? nullptr : &*found;
}

// Values around those of the query in some places, and any in the others: rows on both sides of a condition,
// few equal ones where they are counted off in order.
Filling filling_for(std::string_view query, std::uint64_t seed) {
  Random random(seed);
  Filling filling{{}, {"Ana", "Lima", "Oslo", "Zoe", "Rome"}, seed};
  for (int count = 0; count < 2000; ++count) filling.numbers.push_back(random.between(0, 99'999));
  if (const std::size_t quote = query.find('\''); quote != std::string_view::npos) {
    filling.texts.push_back(query.substr(quote + 1, query.rfind('\'') - quote - 1));
  }
  const std::size_t last = query.find_last_of(' ') + 1;
  std::int64_t number = 0;
  const bool compares = std::from_chars(query.data() + last, query.data() + query.size(), number).ec == std::errc();
  if (!compares || query.contains(" LIMIT ")) return filling;
  for (std::int64_t near = 0; near < 1000; ++near) filling.numbers.push_back(number - 1 + near % 3);
  for (int below = 0; below < 500; ++below) filling.numbers.push_back(random.between(0, number));
  return filling;
}

bool same_rows(std::vector<Row> expected, std::vector<Row> given, bool ordered) {
  if (!ordered) {
    std::ranges::sort(expected);
    std::ranges::sort(given);
  }
  return expected == given;
}

}  // namespace

Draft draw_sql(Random& random, Language language) {
  const Choice choice = choose(random);
  const Phrases& phrases = questions[static_cast<std::size_t>(choice.form)];
  const std::string prompt = say(random, language, phrases,
                                 {columns_of(*choice.schema, language), choice.selected.in(language),
                                  choice.condition.in(language), choice.value});
  return {query_of(choice, Language::english), prompt, query_of(choice, language)};
}

bool accepts_sql(const Task& task, std::string_view answer) {
  const Schema* schema = schema_of(task);
  if (!schema) return false;
  Table table{schema->name.in(task.language), {}};
  for (const Word& column : schema->texts) table.columns.push_back({column.in(task.language), true});
  for (const Word& column : schema->numbers) table.columns.push_back({column.in(task.language), false});
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Filling filling = filling_for(task.answer, seed);
    const auto expected = run_query(table, filling, task.answer);
    const auto given = run_query(table, filling, answer);
    if (!expected || !given || !same_rows(*expected, *given, task.answer.contains(" ORDER BY "))) return false;
  }
  return true;
}

}  // namespace molly::probes
