#include "config/section.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "base/json_writer.h"
#include "base/text.h"
#include "config/secret_source.h"
#include "config/toml_library.h"

namespace molly::config {
namespace detail {

struct State {
  std::string file;
  toml::table content;
  std::vector<Problem> problems;
  // Keys asked for in each table that somebody opened; finish() descends only into those.
  std::map<const toml::table*, std::set<std::string, std::less<>>> asked;
  std::set<std::pair<const toml::table*, std::string>> reported;
};

struct Table {
  const toml::table* content = nullptr;  // null: the table is not in the file
  std::string path;
  toml::source_position place{};  // of the table, or of what would hold it
};

}  // namespace detail

namespace {

using detail::State;
using detail::Table;

std::string joined(std::string_view path, std::string_view key) {
  if (path.empty()) return std::string(key);
  if (key.empty()) return std::string(path);
  return std::string(path) + "." + std::string(key);
}

// What a key looks like in a sentence, whatever bytes it is made of.
std::string in_quotes(std::string_view key) { return base::json_string(key.substr(0, 100)); }

template <class Names>
std::string listed(const Names& names) {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += ", ";
    out += in_quotes(name);
  }
  return out;
}

const toml::node* find(const Table& table, std::string_view key) {
  return table.content == nullptr ? nullptr : table.content->get(key);
}

toml::source_position place_of(const Table& table, std::string_view key) {
  const toml::node* node = find(table, key);
  return node == nullptr ? table.place : node->source().begin;
}

void report(State& state, const Table& table, std::string_view key, std::string sentence) {
  const auto place = place_of(table, key);
  state.problems.push_back({state.file, place.line, place.column, joined(table.path, key), std::move(sentence)});
}

// The value, which counts as asked for from now on.
const toml::node* ask(State& state, const Table& table, std::string_view key) {
  if (table.content != nullptr) state.asked[table.content].emplace(key);
  return find(table, key);
}

std::string unknown_key_sentence(const std::string& key, const std::vector<std::string>& known) {
  std::string sentence = "there is no key " + in_quotes(key) + " here";
  if (const auto meant = base::nearest(key, known)) return sentence + "; did you mean " + in_quotes(*meant) + "?";
  if (known.empty()) return sentence;
  return sentence + "; there are " + listed(known);
}

void report_unknown(State& state, const toml::table& content, const std::string& path, const toml::key& key) {
  if (!state.reported.emplace(&content, std::string(key.str())).second) return;
  const auto& asked = state.asked[&content];
  const std::vector<std::string> known(asked.begin(), asked.end());
  const std::string name(key.str());
  state.problems.push_back({state.file, key.source().begin.line, key.source().begin.column, joined(path, name),
                            unknown_key_sentence(name, known)});
}

void finish_table(State& state, const toml::table& content, const std::string& path) {
  for (const auto& [key, value] : content) {
    const std::string name(key.str());
    if (!state.asked[&content].contains(name)) {
      report_unknown(state, content, path, key);
    } else if (const toml::table* inner = value.as_table(); inner != nullptr && state.asked.contains(inner)) {
      finish_table(state, *inner, joined(path, name));
    } else if (const toml::array* list = value.as_array()) {
      std::size_t number = 0;
      for (const toml::node& element : *list) {
        ++number;
        const toml::table* item = element.as_table();
        if (item == nullptr || !state.asked.contains(item)) continue;
        finish_table(state, *item, joined(path, name) + "[" + std::to_string(number) + "]");
      }
    }
  }
}

// The parser quotes what it stumbled over, and that may be a secret; only names of keys may stay.
std::string without_quotations(std::string_view description) {
  if (description.contains("redefine")) return std::string(description);
  std::string out;
  while (!description.empty()) {
    const auto open = description.find('\'');
    const auto close = open == std::string_view::npos ? open : description.find('\'', open + 1);
    if (close == std::string_view::npos) return out + std::string(description);
    const bool one_sign = close - open <= 2;
    out += description.substr(0, open);
    out += one_sign ? description.substr(open, close + 1 - open) : "something else";
    description.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

std::string Problem::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line) + ":" + std::to_string(column);
  if (!key.empty()) out += ": " + key;
  return out + ": " + sentence;
}

std::optional<std::string> Section::text(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_string()) return value->get();
  report(*state_, *table_, key, "must be text in double quotes");
  return std::nullopt;
}

std::optional<std::string> Section::choice(std::string_view key, std::span<const std::string_view> choices) {
  auto value = text(key);
  if (!value || std::ranges::find(choices, *value) != choices.end()) return value;
  const std::vector<std::string> names(choices.begin(), choices.end());
  std::string sentence = "must be one of " + listed(names);
  if (const auto meant = base::nearest(*value, names)) sentence += "; did you mean " + in_quotes(*meant) + "?";
  report(*state_, *table_, key, std::move(sentence));
  return std::nullopt;
}

std::optional<std::vector<std::string>> Section::texts(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  if (const auto* single = node->as_string()) return std::vector<std::string>{single->get()};
  const toml::array* list = node->as_array();
  std::vector<std::string> out;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* value = list->get(i)->as_string();
    if (value == nullptr) {
      list = nullptr;
    } else {
      out.push_back(value->get());
    }
  }
  if (list != nullptr) return out;
  report(*state_, *table_, key, "must be a list of texts: [\"a\", \"b\"]");
  return std::nullopt;
}

std::optional<std::int64_t> Section::integer(std::string_view key, Range<std::int64_t> range) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_integer();
  if (value != nullptr && value->get() >= range.least && value->get() <= range.most) return value->get();
  std::string sentence = "must be a whole number of at least " + std::to_string(range.least);
  if (range.most != any_integer.most) sentence += " and at most " + std::to_string(range.most);
  report(*state_, *table_, key, std::move(sentence));
  return std::nullopt;
}

std::optional<double> Section::number(std::string_view key, Range<double> range) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  std::optional<double> value;
  if (const auto* floating = node->as_floating_point()) value = floating->get();
  if (const auto* whole = node->as_integer()) value = static_cast<double>(whole->get());
  if (value && std::isfinite(*value) && *value >= range.least && *value <= range.most) return value;
  std::string sentence = "must be a number";
  if (range.least != any_number.least) sentence += " of at least " + base::JsonWriter().value(range.least).text();
  if (range.most != any_number.most) sentence += ", at most " + base::JsonWriter().value(range.most).text();
  report(*state_, *table_, key, std::move(sentence));
  return std::nullopt;
}

std::optional<bool> Section::boolean(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_boolean()) return value->get();
  report(*state_, *table_, key, "must be true or false");
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> Section::duration(std::string_view key,
                                                           Range<std::chrono::milliseconds> range) {
  using std::chrono::milliseconds;
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  const bool in_seconds = key.ends_with("_seconds");
  // Far beyond any range, and far below where milliseconds overflow.
  constexpr std::int64_t most_seconds = 1'000'000'000'000;
  std::optional<milliseconds> value;
  if (const auto* written = node->as_string()) value = base::parse_duration(written->get());
  if (const auto* whole = node->as_integer(); whole != nullptr && in_seconds && std::abs(whole->get()) < most_seconds) {
    value = milliseconds(whole->get() * 1000);
  }
  if (const auto* part = node->as_floating_point(); part != nullptr && in_seconds && std::abs(part->get()) < 1e12) {
    value = milliseconds(std::llround(part->get() * 1000));
  }
  if (value && *value >= range.least && *value <= range.most) return value;
  report(*state_, *table_, key,
         std::string(in_seconds ? "must be a number of seconds, or a text such as \"500ms\" or \"10m\""
                                : "must be a duration such as \"500ms\", \"30s\", \"10m\" or \"2h\"") +
             ", from " + base::human_duration(range.least) + " to " + base::human_duration(range.most));
  return std::nullopt;
}

std::optional<std::uint64_t> Section::bytes(std::string_view key, Range<std::uint64_t> range) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  std::optional<std::uint64_t> value;
  if (const auto* written = node->as_string()) value = base::parse_size(written->get());
  if (const auto* whole = node->as_integer(); whole != nullptr && whole->get() >= 0) {
    value = static_cast<std::uint64_t>(whole->get());
  }
  if (value && *value >= range.least && *value <= range.most) return value;
  std::string sentence = "must be a number of bytes or a size such as \"64KiB\", \"32MiB\" or \"12GiB\", of at least " +
                         base::human_size(range.least);
  if (range.most != any_bytes.most) sentence += " and at most " + base::human_size(range.most);
  report(*state_, *table_, key, std::move(sentence));
  return std::nullopt;
}

std::optional<std::chrono::year_month_day> Section::date(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_date()) {
    const toml::date date = value->get();
    return std::chrono::year(date.year) / std::chrono::month(date.month) / std::chrono::day(date.day);
  }
  report(*state_, *table_, key, "must be a date without quotes: 2027-03-01");
  return std::nullopt;
}

std::optional<base::Secret> Section::secret(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return std::nullopt;
  const auto* source = node->as_string();
  const std::string_view written = source == nullptr ? std::string_view() : std::string_view(source->get());
  auto value = read_secret(written, std::filesystem::path(state_->file).parent_path());
  if (value) return std::move(*value);
  report(*state_, *table_, key, std::move(value.error().message));
  return std::nullopt;
}

std::string Section::required_text(std::string_view key) {
  if (!has(key)) {
    ask(*state_, *table_, key);
    report(*state_, *table_, key, "is missing");
    return {};
  }
  return text(key).value_or("");
}

Section Section::table(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  auto inner = std::make_shared<Table>();
  inner->path = joined(table_->path, key);
  inner->place = place_of(*table_, key);
  if (node != nullptr) inner->content = node->as_table();
  if (inner->content != nullptr) state_->asked.try_emplace(inner->content);
  if (node != nullptr && inner->content == nullptr) {
    report(*state_, *table_, key, "must be a table: [" + inner->path + "] or { ... }");
  }
  return Section(state_, std::move(inner));
}

std::vector<Section> Section::tables(std::string_view key) {
  const toml::node* node = ask(*state_, *table_, key);
  if (node == nullptr) return {};
  const toml::array* list = node->as_array();
  std::vector<Section> out;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const toml::node& element = *list->get(i);
    if (!element.is_table()) {
      list = nullptr;
      break;
    }
    auto inner = std::make_shared<Table>(
        element.as_table(), joined(table_->path, key) + "[" + std::to_string(i + 1) + "]", element.source().begin);
    state_->asked.try_emplace(inner->content);
    out.push_back(Section(state_, std::move(inner)));
  }
  if (list != nullptr) return out;
  report(*state_, *table_, key, "must be a list of tables: write [[" + joined(table_->path, key) + "]] before each");
  return {};
}

std::vector<std::string> Section::keys() const {
  std::vector<std::pair<toml::source_position, std::string>> found;
  if (table_->content != nullptr) {
    for (const auto& [key, value] : *table_->content) found.emplace_back(key.source().begin, std::string(key.str()));
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (auto& [place, key] : found) out.push_back(std::move(key));
  return out;
}

bool Section::has(std::string_view key) const { return find(*table_, key) != nullptr; }

bool Section::exists() const { return table_->content != nullptr; }

const std::string& Section::path() const { return table_->path; }

std::uint32_t Section::line(std::string_view key) const { return place_of(*table_, key).line; }

void Section::refuse(std::string_view key, std::string sentence) {
  ask(*state_, *table_, key);
  report(*state_, *table_, key, std::move(sentence));
}

void Section::finish() {
  if (table_->content != nullptr) finish_table(*state_, *table_->content, table_->path);
}

Document Document::empty() { return Document(std::make_shared<State>()); }

Document Document::parse(std::string_view text, std::string file_name) {
  auto state = std::make_shared<State>();
  state->file = std::move(file_name);
  try {
    state->content = toml::parse(text, std::string_view(state->file));
  } catch (const toml::parse_error& error) {
    const auto place = error.source().begin;
    state->problems.push_back({state->file, place.line, place.column, "", without_quotations(error.description())});
  }
  return Document(std::move(state));
}

Section Document::root() const {
  auto table = std::make_shared<Table>();
  table->content = &state_->content;
  return Section(state_, std::move(table));
}

const std::vector<Problem>& Document::problems() const { return state_->problems; }

const std::string& Document::file() const { return state_->file; }

Result<void> Document::finish() {
  root().finish();
  auto& problems = state_->problems;
  if (problems.empty()) return {};
  std::ranges::stable_sort(problems, {},
                           [](const Problem& problem) { return std::pair(problem.line, problem.column); });
  std::string message;
  for (const Problem& problem : problems) {
    if (!message.empty()) message += "\n";
    message += problem.text();
  }
  return failure(ErrorCode::config_invalid, std::move(message), problems.front().key);
}

}  // namespace molly::config
