#include <algorithm>
#include <string>
#include <vector>

#include "probes/families/draws.h"
#include "probes/names.h"
#include "probes/pattern.h"

namespace molly::probes {

namespace {

// A run in a pattern: so many characters of one kind. In keys a part is its letter and its count, as in "d3-U2".
struct Kind {
  char letter;
  Word one;
  Word several;
  std::string_view pattern;
  std::string_view members;  // for examples; the first and the last are the ends of the range
};
constexpr std::array kinds{
    Kind{'d', {"digit", "dígito"}, {"digits", "dígitos"}, "[0-9]", "0479"},
    Kind{'U', {"capital letter", "mayúscula"}, {"capital letters", "mayúsculas"}, "[A-Z]", "AMQZ"},
    Kind{'l', {"small letter", "minúscula"}, {"small letters", "minúsculas"}, "[a-z]", "akrz"}};

struct Separator {
  char sign;
  Word name;
};
constexpr std::array separators{
    Separator{'-', {"a dash", "un guion"}},       Separator{':', {"a colon", "dos puntos"}},
    Separator{'/', {"a slash", "una barra"}},     Separator{'_', {"an underscore", "un guion bajo"}},
    Separator{'@', {"an at sign", "una arroba"}}, Separator{'#', {"a hash", "una almohadilla"}}};

constexpr Phrases regexes{{"Regex for {0}?", "Write a regex: {0}", "Pattern that matches {0}:", "{0}. Regex:"},
                          {"¿Regex para {0}?", "Escribe una regex: {0}", "Patrón que acepta {0}:", "{0}. Regex:"}};

std::string count_of(const Kind& kind, std::size_t count, Language language) {
  return fill("{0} {1}", {std::to_string(count), (count == 1 ? kind.one : kind.several).in(language)});
}

const Kind& kind_of(char letter) { return *std::ranges::find(kinds, letter, &Kind::letter); }

// The key of a task as its parts: letter and count, a count of 0 for a separator.
struct Run {
  char letter;
  std::size_t count;
};
std::vector<Run> parts_of(std::string_view key) {
  std::vector<Run> parts;
  while (!key.empty()) {
    const bool is_kind = std::ranges::contains(kinds, key.front(), &Kind::letter);
    parts.push_back({key.front(), is_kind && key.size() > 1 ? static_cast<std::size_t>(key[1] - '0') : 0});
    key.remove_prefix(std::min(key.size(), std::size_t{is_kind ? 2U : 1U}));
  }
  return parts;
}

std::string example(const std::vector<Run>& parts, std::size_t variant) {
  std::string text;
  for (const Run& part : parts) {
    if (part.count == 0) {
      text += part.letter;
      continue;
    }
    const std::string_view members = kind_of(part.letter).members;
    for (std::size_t at = 0; at < part.count; ++at) text += members[(at + variant) % members.size()];
  }
  return text;
}

// Strings beside the described set: every part one shorter or longer, of another kind, every sign replaced, and more
// before or behind the whole.
std::vector<std::string> counterexamples(const std::vector<Run>& parts) {
  std::vector<std::string> texts{"", "x" + example(parts, 0), example(parts, 0) + "7", example(parts, 0) + "a"};
  for (std::size_t at = 0; at < parts.size(); ++at) {
    std::vector<Run> changed = parts;
    if (parts[at].count == 0) {
      for (const char sign : std::string_view("-:/_@#. x5")) {
        changed[at].letter = sign;
        std::string text = example(parts, 0);
        text[example({parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(at)}, 0).size()] = sign;
        if (sign != parts[at].letter) texts.push_back(std::move(text));
      }
      continue;
    }
    ++changed[at].count;
    texts.push_back(example(changed, 0));
    changed[at].count -= 2;
    if (changed[at].count > 0) texts.push_back(example(changed, 0));
    changed[at].count = parts[at].count;
    for (const Kind& kind : kinds) {
      changed[at].letter = kind.letter;
      if (kind.letter != parts[at].letter) texts.push_back(example(changed, 0));
    }
  }
  return texts;
}

}  // namespace

Draft draw_regex(Random& random, Language language) {
  Draft draft;
  std::vector<std::string> words;
  const std::size_t count = 2 + random.below(2);
  for (std::size_t part = 0; part < count; ++part) {
    if (part > 0) {
      const Separator& separator = random.pick(separators);
      draft.key += separator.sign;
      draft.answer += separator.sign;
      words.emplace_back(separator.name.in(language));
    }
    const Kind& kind = random.pick(kinds);
    const std::size_t repeats = 1 + random.below(5);
    draft.key += fill("{0}{1}", {std::string(1, kind.letter), std::to_string(repeats)});
    draft.answer += kind.pattern;
    if (repeats > 1) draft.answer += fill("{{0}}", {std::to_string(repeats)});
    words.push_back(count_of(kind, repeats, language));
  }
  draft.prompt = say(random, language, regexes, {join(words, ", ")});
  return draft;
}

bool accepts_regex(const Task& task, std::string_view answer) {
  const std::vector<Run> parts = parts_of(task.key);
  for (std::size_t variant = 0; variant < 4; ++variant) {
    if (!matches(answer, example(parts, variant)).value_or(false)) return false;
  }
  return std::ranges::none_of(counterexamples(parts),
                              [&](const std::string& text) { return matches(answer, text).value_or(true); });
}

}  // namespace molly::probes
