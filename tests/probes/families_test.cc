#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "probes/probe.h"
#include "probes/random.h"

namespace molly::probes {
namespace {

constexpr Language languages[] = {Language::english, Language::spanish};
constexpr Part parts[] = {Part::train, Part::held_out};

class Families : public testing::TestWithParam<std::string_view> {
 protected:
  const Family& family = *find_family(GetParam());
};

TEST_P(Families, accept_their_own_answers) {
  for (const Language language : languages) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const Task task = make_task(family, language, parts[seed % 2], seed);
      EXPECT_TRUE(is_right(task, task.answer)) << task.prompt << "\n" << task.answer;
      EXPECT_TRUE(is_right(task, " \n" + task.answer + "\n")) << task.prompt << "\n" << task.answer;
    }
  }
}

TEST_P(Families, refuse_the_answers_of_other_tasks) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Task task = make_task(family, Language::english, Part::train, seed);
    const Task other = make_task(family, Language::english, Part::train, seed + 1000);
    if (other.answer != task.answer) {
      EXPECT_FALSE(is_right(task, other.answer)) << task.prompt << "\n" << other.answer;
    }
  }
}

TEST_P(Families, refuse_damaged_answers) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Task task = make_task(family, Language::spanish, Part::held_out, seed);
    EXPECT_FALSE(is_right(task, ""));
    EXPECT_FALSE(is_right(task, "x" + task.answer)) << task.answer;
    EXPECT_FALSE(is_right(task, task.answer + " " + task.answer)) << task.answer;
    EXPECT_FALSE(is_right(task, std::string_view(task.answer).substr(1))) << task.answer;
  }
}

TEST_P(Families, keep_prompts_and_answers_short) {
  for (const Language language : languages) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      const Task task = make_task(family, language, Part::train, seed);
      EXPECT_LE(task.prompt.size(), 200U) << task.prompt;
      EXPECT_LE(task.answer.size(), 80U) << task.answer;
      EXPECT_FALSE(task.answer.empty());
    }
  }
}

TEST_P(Families, never_share_a_key_between_the_parts_and_have_enough_of_them) {
  std::set<std::string> trained;
  std::set<std::string> held_out;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    trained.insert(make_task(family, languages[seed % 2], Part::train, seed).key);
    held_out.insert(make_task(family, languages[seed % 2], Part::held_out, seed).key);
  }
  for (const std::string& key : held_out) EXPECT_FALSE(trained.contains(key)) << key;
  EXPECT_GE(trained.size(), 1500U);
  EXPECT_GE(held_out.size(), 150U);
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  for (const Family& family : families()) names.push_back(family.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(, Families, testing::ValuesIn(family_names()),
                         [](const auto& tested) { return std::string(tested.param); });

// Trained models and published figures rest on these tasks: a change of the digest means that both are made anew.
TEST(Tasks, stay_the_same_for_the_same_seed) {
  std::uint64_t digest = 0;
  for (const Family& family : families()) {
    for (const Language language : languages) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Task task = make_task(family, language, parts[seed % 2], seed);
        digest = digest * 31 + hash_of(task.key + "\n" + task.prompt + "\n" + task.answer);
      }
    }
  }
  EXPECT_EQ(digest, 16214108188912986967U);
}

TEST(Tasks, of_an_unknown_family_have_no_right_answer) {
  EXPECT_FALSE(is_right({"no such family", Language::english, "key", "prompt", "answer"}, "answer"));
}

}  // namespace
}  // namespace molly::probes
