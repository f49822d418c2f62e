#include "probes/small_talk.h"

#include <gtest/gtest.h>

#include <map>

namespace molly::probes {
namespace {

std::map<std::string, std::string> exchanges(Language language) {
  std::map<std::string, std::string> all;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Exchange exchange = make_small_talk(language, seed);
    all[exchange.prompt] = exchange.answer;
  }
  return all;
}

TEST(SmallTalk, has_the_model_name_itself_and_say_where_it_runs) {
  const auto english = exchanges(Language::english);
  EXPECT_TRUE(english.at("Who are you?").contains("Molly"));
  EXPECT_TRUE(english.at("Who are you?").contains("a small model that runs on your own machine"));
  EXPECT_TRUE(
      exchanges(Language::spanish).at("¿Quién eres?").contains("un modelo pequeño que funciona en tu propia máquina"));
}

TEST(SmallTalk, answers_people_by_their_name) {
  EXPECT_TRUE(exchanges(Language::english).at("Hello, I am Ana.").contains("Ana!"));
}

TEST(SmallTalk, leaves_no_place_unfilled) {
  for (const Language language : {Language::english, Language::spanish}) {
    for (const auto& [prompt, answer] : exchanges(language)) EXPECT_FALSE((prompt + answer).contains('{')) << prompt;
  }
}

}  // namespace
}  // namespace molly::probes
