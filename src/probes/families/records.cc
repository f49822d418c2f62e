#include <string>
#include <vector>

#include "base/json_writer.h"
#include "probes/families/draws.h"
#include "probes/names.h"

namespace molly::probes {

namespace {

enum class Content : std::uint8_t { name, city, number };
struct Field {
  Word label;
  Content content;
  std::int64_t most = 0;  // of numbers
};
constexpr std::array fields{
    Field{{"name", "nombre"}, Content::name},         Field{{"city", "ciudad"}, Content::city},
    Field{{"boss", "jefe"}, Content::name},           Field{{"origin", "origen"}, Content::city},
    Field{{"age", "edad"}, Content::number, 99},      Field{{"id", "id"}, Content::number, 9999},
    Field{{"price", "precio"}, Content::number, 500}, Field{{"floor", "piso"}, Content::number, 60},
    Field{{"seat", "asiento"}, Content::number, 300}, Field{{"team", "equipo"}, Content::number, 40}};

struct Entry {
  const Field* field;
  std::string value;
};
using Record = std::vector<Entry>;

std::string value_for(Random& random, const Field& field) {
  if (field.content == Content::name) return std::string(random.pick(names));
  if (field.content == Content::city) return std::string(random.pick(cities));
  return std::to_string(random.between(1, field.most));
}

Record record_of(Random& random, const std::vector<std::size_t>& columns) {
  Record record;
  for (const std::size_t column : columns) {
    const Field& field = fields[column];
    record.push_back({&field, value_for(random, field)});
  }
  return record;
}

std::string json_of(const Record& record, Language language) {
  base::JsonWriter json;
  json.begin_object();
  for (const Entry& entry : record) {
    json.key(entry.field->label.in(language));
    if (entry.field->content == Content::number) {
      json.raw(entry.value);
    } else {
      json.value(entry.value);
    }
  }
  return std::move(json.end_object()).text();
}

std::string key_of(const Record& record) { return json_of(record, Language::english); }

std::vector<std::string> values_of(const Record& record) {
  std::vector<std::string> values;
  for (const Entry& entry : record) values.push_back(entry.value);
  return values;
}

std::vector<std::string> labels_of(const Record& record, Language language) {
  std::vector<std::string> labels;
  for (const Entry& entry : record) labels.emplace_back(entry.field->label.in(language));
  return labels;
}

// "name: Ana; age: 31"
std::string facts_of(const Record& record, Language language, std::string_view is, std::string_view separator) {
  std::vector<std::string> facts;
  for (const Entry& entry : record)
    facts.push_back(fill("{0}{1}{2}", {entry.field->label.in(language), is, entry.value}));
  return join(facts, separator);
}

std::string in_words(Random& random, const Record& record, Language language) {
  switch (random.below(3)) {
    case 0: return facts_of(record, language, " ", ", ");
    case 1: return facts_of(record, language, ": ", "; ");
    default: return facts_of(record, language, language == Language::english ? " is " : " es ", ", ");
  }
}

constexpr Phrases to_json_phrases{
    {"Write as JSON: {0}", "JSON of: {0}", "Turn this into a JSON object: {0}", "{0}\nAs JSON:"},
    {"Escribe como JSON: {0}", "JSON de: {0}", "Convierte esto en un objeto JSON: {0}", "{0}\nComo JSON:"}};
constexpr Phrases to_csv_phrases{
    {"Write as CSV: {0}", "CSV with a header of: {0}", "Turn this JSON into CSV: {0}", "{0}\nAs CSV:"},
    {"Escribe como CSV: {0}", "CSV con cabecera de: {0}", "Convierte este JSON en CSV: {0}", "{0}\nComo CSV:"}};
constexpr Phrases lookups{{"{0}\nWhat is {1}?", "What is {1} in {0}?", "Value of {1}: {0}", "{0} -> {1}"},
                          {"{0}\n¿Cuál es {1}?", "¿Cuál es {1} en {0}?", "Valor de {1}: {0}", "{0} -> {1}"}};

}  // namespace

Draft draw_to_json(Random& random, Language language) {
  const std::size_t count = 2 + random.below(2);
  const Record record = record_of(random, distinct(random, fields.size(), count));
  const std::string facts = in_words(random, record, language);
  return {key_of(record), say(random, language, to_json_phrases, {facts}), json_of(record, language)};
}

Draft draw_json_to_csv(Random& random, Language language) {
  const std::vector<std::size_t> columns = distinct(random, fields.size(), 2);
  const std::size_t count = 1 + random.below(2);
  std::vector<std::string> keys;
  std::vector<std::string> objects;
  std::vector<std::string> lines;
  for (std::size_t row = 0; row < count; ++row) {
    const Record record = record_of(random, columns);
    if (row == 0) lines.push_back(join(labels_of(record, language), ","));
    keys.push_back(key_of(record));
    objects.push_back(json_of(record, language));
    lines.push_back(join(values_of(record), ","));
  }
  const std::string json = "[" + join(objects, ",") + "]";
  return {join(keys, ","), say(random, language, to_csv_phrases, {json}), join(lines, "\n")};
}

Draft draw_json_lookup(Random& random, Language language) {
  const std::size_t count = 2 + random.below(3);
  const Record record = record_of(random, distinct(random, fields.size(), count));
  const Entry& asked = random.pick(record);
  const std::string key = key_of(record) + "." + std::string(asked.field->label.english);
  return {key, say(random, language, lookups, {json_of(record, language), asked.field->label.in(language)}),
          asked.value};
}

}  // namespace molly::probes
