#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "config/section.h"
#include "policy_fixture.h"

// Runs cases.txt, which says what its lines mean.
namespace molly::policy {
namespace {

struct Expectation {
  int line = 0;
  bool allowed = false;
  std::string target;
  std::string code;
  std::string sentence;
};

struct Request {
  SovereigntyProfile profile;
  std::vector<Expectation> expectations;
};

struct Case {
  std::string title;
  std::string toml;
  std::vector<Request> requests;
};

void set(SovereigntyProfile& profile, std::string_view word) {
  const std::string_view key = word.substr(0, word.find('='));
  const std::string value(word.substr(key.size() + 1));
  if (key == "member")
    profile.member = value;
  else if (key == "role")
    profile.roles.push_back(value);
  else if (key == "application")
    profile.application = value;
  else if (key == "model")
    profile.model = value;
  else if (key == "declared")
    profile.declared = labels::parse_confidentiality(value).value();
  else if (key == "zones")
    profile.label.zones = labels::parse_name_set(value).value();
  else if (key == "max")
    profile.max_tier = parse_tier(value).value();
  else if (key == "label")
    profile.label = labels::parse_label(value).value();
  else if (key == "carried")
    profile.carried = parse_carried(value).value();
  else
    FAIL() << "unknown word " << word;
}

SovereigntyProfile parse_request(const std::string& line) {
  SovereigntyProfile profile;
  std::istringstream words(line);
  std::string word;
  words >> word;
  while (words >> word) set(profile, word);
  return profile;
}

Expectation parse_expectation(const std::string& line, int number) {
  std::istringstream words(line);
  std::string sign;
  Expectation expectation{.line = number};
  words >> sign >> expectation.target >> expectation.code >> std::ws;
  expectation.allowed = sign == "+";
  std::getline(words, expectation.sentence);
  return expectation;
}

std::vector<Case> read_cases() {
  std::ifstream in(MOLLY_TEST_DATA "/cases.txt");
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("== "))
      cases.push_back({.title = line.substr(3)});
    else if (line.starts_with("request"))
      cases.back().requests.push_back({parse_request(line), {}});
    else if (line.starts_with("  + ") || line.starts_with("  - "))
      cases.back().requests.back().expectations.push_back(parse_expectation(line, number));
    else
      cases.back().toml += line + '\n';
  }
  return cases;
}

std::shared_ptr<const Engine> engine_for(const Case& one) {
  auto document = config::Document::parse(one.toml, "cases.txt");
  config::Section root = document.root();
  Rules rules = read_rules(root);
  const auto verdict = document.finish();
  EXPECT_TRUE(verdict) << verdict.error().message;
  auto targets = all_targets();
  targets.push_back({"far", Tier::t2, "eu", "", "model", false, "Its key does not match."});
  return engine(std::move(rules), std::move(targets));
}

TEST(Cases, every_case_of_the_text_file_holds) {
  const std::vector<Case> cases = read_cases();
  ASSERT_GE(cases.size(), 14);
  for (const Case& one : cases) {
    SCOPED_TRACE(one.title);
    const auto rules = engine_for(one);
    for (const Request& request : one.requests) {
      const Clearance clearance = rules->clear(request.profile, today);
      const auto decisions = clearance.decisions();
      for (const Expectation& expected : request.expectations) {
        const auto decision = std::ranges::find(decisions, expected.target, &TargetDecision::target);
        ASSERT_NE(decision, decisions.end()) << "line " << expected.line;
        EXPECT_EQ(decision->allowed, expected.allowed) << "line " << expected.line << ": " << decision->sentence;
        EXPECT_EQ(clearance.allows(expected.target), expected.allowed);
        EXPECT_EQ(decision->code, expected.allowed ? "allowed" : expected.code) << "line " << expected.line;
        EXPECT_THAT(decision->sentence, ::testing::HasSubstr(expected.sentence)) << "line " << expected.line;
      }
    }
  }
}

}  // namespace
}  // namespace molly::policy
