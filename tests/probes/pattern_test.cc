#include "probes/pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace molly::probes {
namespace {

TEST(Pattern, matches_whole_texts) {
  struct Case {
    std::string_view pattern;
    std::string_view text;
    bool is_match;
  };
  constexpr Case cases[] = {{"abc", "abc", true},
                            {"abc", "abcd", false},
                            {"abc", "xabc", false},
                            {"^abc$", "abc", true},
                            {"a.c", "a-c", true},
                            {"a\\.c", "a-c", false},
                            {"[a-c]+", "abcabc", true},
                            {"[^a-c]+", "abd", false},
                            {"\\d{2,3}", "12", true},
                            {"\\d{2,3}", "1234", false},
                            {"\\d{2,}", "12345", true},
                            {"(ab|c)*", "abcab", true},
                            {"(?:ab)?c", "c", true},
                            {"(a|ab)(c|bcd)", "abcd", true},
                            {"\\w+@\\w+", "a_1@b", true},
                            {"\\$", "$", true},
                            {"a|", "", true},
                            {"(a*)*b", "aaab", true},
                            {"[]a]", "]", true},
                            {"[a-]", "-", true},
                            {"\\D\\S\\W", "xx-", true}};
  for (const Case& one : cases) {
    const auto matched = matches(one.pattern, one.text);
    ASSERT_TRUE(matched) << one.pattern;
    EXPECT_EQ(*matched, one.is_match) << one.pattern << " on " << one.text;
  }
}

TEST(Pattern, that_cannot_be_read_is_refused) {
  for (const std::string_view pattern :
       {"(", ")", "a)", "(a", "[a", "*a", "a**", "a{2", "a{3,2}", "a{65}", "[z-a]", "\\", "\\b", "(?=a)", "a$b"}) {
    EXPECT_FALSE(matches(pattern, "a")) << pattern;
  }
  EXPECT_FALSE(matches(std::string(100, '(') + std::string(100, ')'), ""));
  EXPECT_FALSE(matches("a", std::string(63, 'a')));
}

TEST(Pattern, that_multiplies_its_work_ends_soon) {
  std::string nested = "a?";
  for (int level = 0; level < 15; ++level) nested.insert(0, "(").append("a?){64}");
  const auto matched = matches(nested, std::string(62, 'a'));
  EXPECT_TRUE(!matched || *matched);
}

}  // namespace
}  // namespace molly::probes
