#include "config/section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace molly::config {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The only problem of a document, as a person sees it.
std::string only_problem(Document& document) {
  const auto verdict = document.finish();
  if (verdict) return "no problem";
  EXPECT_EQ(document.problems().size(), 1U) << verdict.error().message;
  EXPECT_EQ(verdict.error().code, ErrorCode::config_invalid);
  return verdict.error().message;
}

TEST(Section, reads_every_type) {
  auto document = Document::parse(R"(
name = "office"
zones = ["device", "lan"]
one = "lan"
count = 3
price = 0.5
whole_price = 2
on = true
keep_alive = "10m"
idle_seconds = 75
short_seconds = "500ms"
half_seconds = 0.5
memory = "12GiB"
limit = 1024
expires = 2027-03-01
)",
                                  "molly.toml");
  auto root = document.root();
  EXPECT_EQ(root.text("name"), "office");
  EXPECT_THAT(root.texts("zones").value(), ElementsAre("device", "lan"));
  EXPECT_THAT(root.texts("one").value(), ElementsAre("lan"));
  EXPECT_EQ(root.integer("count"), 3);
  EXPECT_EQ(root.number("price"), 0.5);
  EXPECT_EQ(root.number("whole_price"), 2.0);
  EXPECT_EQ(root.boolean("on"), true);
  EXPECT_EQ(root.duration("keep_alive"), milliseconds(600'000));
  EXPECT_EQ(root.duration("idle_seconds"), milliseconds(75'000));
  EXPECT_EQ(root.duration("short_seconds"), milliseconds(500));
  EXPECT_EQ(root.duration("half_seconds"), milliseconds(500));
  EXPECT_EQ(root.bytes("memory"), 12ULL << 30);
  EXPECT_EQ(root.bytes("limit"), 1024U);
  EXPECT_EQ(root.date("expires"), std::chrono::year(2027) / 3 / 1);
  EXPECT_TRUE(document.finish().has_value());
}

TEST(Section, answers_nothing_for_absent_keys_and_tables) {
  auto document = Document::empty();
  auto server = document.root().table("server");
  EXPECT_FALSE(server.exists());
  EXPECT_EQ(server.text("socket"), std::nullopt);
  EXPECT_EQ(server.table("tls").text("key"), std::nullopt);
  EXPECT_THAT(document.root().tables("target"), IsEmpty());
  EXPECT_TRUE(document.finish().has_value());
}

TEST(Section, reports_an_unknown_key_with_line_and_nearest) {
  auto document = Document::parse("[server]\nthreads = 2\nmax_conections = 3\n", "molly.toml");
  auto server = document.root().table("server");
  server.integer("threads");
  server.integer("max_connections");
  EXPECT_EQ(only_problem(document),
            "molly.toml:3:1: server.max_conections: there is no key \"max_conections\" here; "
            "did you mean \"max_connections\"?");
}

TEST(Section, lists_the_known_keys_where_none_is_near) {
  auto document = Document::parse("[server]\nbanana = 2\n", "molly.toml");
  auto server = document.root().table("server");
  server.integer("threads");
  EXPECT_THAT(only_problem(document), HasSubstr("there is no key \"banana\" here; there are \"threads\""));
}

TEST(Section, reports_an_unknown_table_once) {
  auto document = Document::parse("[sever]\nthreads = 2\n", "molly.toml");
  document.root().table("server").integer("threads");
  document.root().finish();
  EXPECT_THAT(only_problem(document),
              HasSubstr("molly.toml:1:2: sever: there is no key \"sever\" here; did you mean \"server\"?"));
}

TEST(Section, finds_unknown_keys_in_lists_and_inline_tables) {
  auto document = Document::parse("[[target]]\nname = \"a\"\n[[target]]\nname = \"b\"\nprice = { imput = 1 }\n", "f");
  for (auto& target : document.root().tables("target")) {
    target.text("name");
    target.table("price").number("input");
  }
  EXPECT_THAT(only_problem(document), HasSubstr("f:5:11: target[2].price.imput: there is no key \"imput\""));
}

TEST(Section, reports_all_mistakes_at_once_in_the_order_of_the_file) {
  auto document = Document::parse("b = 1\na = \"x\"\nc = 2\n", "f");
  auto root = document.root();
  root.integer("a");
  root.text("b");
  const auto verdict = document.finish();
  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().message,
            "f:1:5: b: must be text in double quotes\n"
            "f:2:5: a: must be a whole number of at least 0\n"
            "f:3:1: c: there is no key \"c\" here; did you mean \"a\"?");
}

struct Mistake {
  const char* value;
  std::function<bool(Section&)> read;
  const char* sentence;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, are_named_with_their_place) {
  auto document = Document::parse("\nkey = " + std::string(GetParam().value) + "\n", "f");
  auto root = document.root();
  EXPECT_FALSE(GetParam().read(root));
  const std::string problem = only_problem(document);
  EXPECT_THAT(problem, testing::StartsWith("f:2:7: key: "));
  EXPECT_THAT(problem, HasSubstr(GetParam().sentence));
}

constexpr std::array<std::string_view, 2> levels{"debug", "info"};

INSTANTIATE_TEST_SUITE_P(
    Values, Mistakes,
    testing::Values(
        Mistake{"1", [](Section& s) { return s.text("key").has_value(); }, "must be text"},
        Mistake{"\"inf\"", [](Section& s) { return s.choice("key", levels).has_value(); }, "did you mean \"info\"?"},
        Mistake{"[1]", [](Section& s) { return s.texts("key").has_value(); }, "must be a list of texts"},
        Mistake{"70000", [](Section& s) { return s.integer("key", {1, 65535}).has_value(); },
                "at least 1 and at most 65535"},
        Mistake{"1.5", [](Section& s) { return s.integer("key").has_value(); }, "whole number"},
        Mistake{"nan", [](Section& s) { return s.number("key").has_value(); }, "must be a number"},
        Mistake{"-1.0", [](Section& s) { return s.number("key", {0, 1}).has_value(); }, "at least 0, at most 1"},
        Mistake{"\"yes\"", [](Section& s) { return s.boolean("key").has_value(); }, "true or false"},
        Mistake{"30", [](Section& s) { return s.duration("key").has_value(); }, "must be a duration such as"},
        Mistake{"\"3 weeks\"", [](Section& s) { return s.duration("key").has_value(); }, "must be a duration"},
        Mistake{"\"2h\"",
                [](Section& s) { return s.duration("key", {milliseconds(1), milliseconds(60'000)}).has_value(); },
                "from 1 ms to 1 min"},
        Mistake{"-5", [](Section& s) { return s.bytes("key").has_value(); }, "must be a number of bytes"},
        Mistake{"\"2GiB\"", [](Section& s) { return s.bytes("key", {1, 1 << 20}).has_value(); }, "at most 1 MiB"},
        Mistake{"\"2027-03-01\"", [](Section& s) { return s.date("key").has_value(); }, "date without quotes"},
        Mistake{"3", [](Section& s) { return s.table("key").exists(); }, "must be a table: [key]"},
        Mistake{"3", [](Section& s) { return !s.tables("key").empty(); }, "write [[key]] before each"}));

TEST(Section, reports_a_missing_key_at_its_table) {
  auto document = Document::parse("\n[[target]]\nurl = \"x\"\n", "f");
  for (auto& target : document.root().tables("target")) {
    target.text("url");
    target.required_text("name");
  }
  EXPECT_EQ(only_problem(document), "f:2:1: target[1].name: is missing");
}

TEST(Section, refuses_at_the_line_of_the_key) {
  auto document = Document::parse("[grant]\ntier = \"T3\"\nprovider = \"*\"\n", "f");
  auto grant = document.root().table("grant");
  grant.text("tier");
  grant.refuse("provider", "T3 needs one named provider");
  EXPECT_EQ(only_problem(document), "f:3:12: grant.provider: T3 needs one named provider");
  EXPECT_EQ(grant.line("tier"), 2U);
}

TEST(Section, gives_the_keys_of_a_free_table_in_their_order) {
  auto document = Document::parse("[aliases]\nzeta = \"a\"\nalpha = \"b\"\n", "f");
  auto aliases = document.root().table("aliases");
  EXPECT_THAT(aliases.keys(), ElementsAre("zeta", "alpha"));
  EXPECT_EQ(aliases.text("alpha"), "b");
  EXPECT_THAT(only_problem(document), HasSubstr("zeta"));
}

TEST(Document, names_the_line_of_a_syntax_error) {
  auto document = Document::parse("a = 1\nb = = 2\n", "f");
  EXPECT_THAT(only_problem(document), testing::StartsWith("f:2:"));
}

TEST(Document, refuses_a_table_without_a_name) {
  for (const char* text : {"[;server]", "[[;]]", "[", "[]", "[a.]", "[.a]", "[=]"}) {
    auto document = Document::parse(text, "f");
    EXPECT_THAT(only_problem(document), testing::StartsWith("f:1:")) << text;
  }
}

TEST(Document, refuses_a_key_that_stands_twice) {
  auto document = Document::parse("[server]\nthreads = 1\nthreads = 2\n", "f");
  const std::string problem = only_problem(document);
  EXPECT_THAT(problem, testing::StartsWith("f:3:"));
  EXPECT_THAT(problem, HasSubstr("threads"));
}

TEST(Document, never_repeats_what_a_syntax_error_stumbled_over) {
  for (const char* text :
       {"key = sk-topsecret123\n", "key = 'sk-topsecret123\n", "key = 12topsecret\n", "key = \"a\" topsecret\n",
        "topsecret\n", "key = \"\\qtopsecret\"\n", "key = truetopsecret\n", "key = 0xtopsecret\n",
        "key = 2027-03-01Ttopsecret\n", "key = inftopsecret\n", "key = \"topsecret\"\nkey = \"topsecret\"\n",
        "key = \"x\"\n[key]\na = \"topsecret\""}) {
    auto document = Document::parse(text, "f");
    EXPECT_THAT(only_problem(document), Not(HasSubstr("topsecret"))) << text;
  }
}

}  // namespace
}  // namespace molly::config
