#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace molly::probes {

class Random;

enum class Language : std::uint8_t { english, spanish };

// Which side of the split a task lies on: told by its key alone, so that no phrasing, language or row of a held-out
// task is ever trained on. One key in ten is held out.
enum class Part : std::uint8_t { train, held_out };

struct Task {
  std::string family;
  Language language = Language::english;
  std::string key;     // what makes two tasks the same task, such as the operands; shared over languages and phrasings
  std::string prompt;  // at most 200 bytes
  std::string answer;  // one right answer, as a model should write it; at most 80 bytes
};

struct Draft {
  std::string key;
  std::string prompt;
  std::string answer;
};

struct Family {
  std::string_view name;
  std::string_view description;
  Draft (*draw)(Random& random, Language language);
  bool (*accepts)(const Task& task, std::string_view answer);
};

// All families, in a fixed order.
std::span<const Family> families();
// Null: there is none of that name.
const Family* find_family(std::string_view name);

// The same arguments give the same task on every platform.
Task make_task(const Family& family, Language language, Part part, std::uint64_t seed);

// The part that a key of a family lies in.
Part part_of(std::string_view family, std::string_view key);

// Whether `answer`, which may be any bytes, is right. It may differ from the task's own answer in white space around
// it, in a full stop behind a word or a number, and where the form has several spellings of the same thing: order of
// members in JSON, queries with equal results, patterns that match the same examples. False for an unknown family.
bool is_right(const Task& task, std::string_view answer);

}  // namespace molly::probes
