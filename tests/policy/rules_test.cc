#include "policy/rules.h"

#include <gmock/gmock.h>

#include "config/section.h"
#include "policy_fixture.h"

namespace molly::policy {
namespace {

using ::testing::HasSubstr;

struct Read {
  Rules rules;
  std::string problems;  // empty: none
};

Read read(std::string_view text) {
  auto document = config::Document::parse(text, "molly.toml");
  config::Section root = document.root();
  Rules rules = read_rules(root);
  const auto verdict = document.finish();
  return {std::move(rules), verdict ? std::string() : verdict.error().message};
}

TEST(Rules, an_empty_file_means_the_defaults) {
  const Read empty = read("");
  EXPECT_EQ(empty.problems, "");
  EXPECT_EQ(empty.rules.defaults.max_tier, Tier::t1);
  EXPECT_EQ(empty.rules.defaults.confidentiality, Confidentiality::internal);
  EXPECT_TRUE(empty.rules.grants.empty());
}

TEST(Rules, every_key_is_read) {
  const Read file = read(R"(
[defaults]
max_tier = "T0"
confidentiality = "confidential"
[[pin]]
match = { application = "clinic", member = "ana", role = "doctor", model = "auto" }
confidentiality = "secret"
integrity = "tainted"
zones = ["device", "lan"]
max_tier = "T0"
[[grant]]
tier = "T3"
provider = "acme"
zones = ["eu"]
members = ["role:analyst", "ana"]
max_confidentiality = "public"
expires = 2027-03-01
[[grant]]
tier = "T2"
target = "rack"
max_confidentiality = "secret"
)");
  ASSERT_EQ(file.problems, "");
  EXPECT_EQ(file.rules.defaults.max_tier, Tier::t0);
  EXPECT_EQ(file.rules.defaults.confidentiality, Confidentiality::confidential);
  const Pin& pin = file.rules.pins.at(0);
  EXPECT_EQ(pin.application, "clinic");
  EXPECT_EQ(pin.role, "doctor");
  EXPECT_EQ(labels::to_string(pin.label), "secret/tainted/device+lan/*");
  EXPECT_EQ(pin.max_tier, Tier::t0);
  const Grant& grant = file.rules.grants.at(0);
  EXPECT_EQ(grant.provider, "acme");
  EXPECT_THAT(grant.members, ::testing::ElementsAre(MemberPattern{true, "analyst"}, MemberPattern{false, "ana"}));
  EXPECT_EQ(grant.expires, std::chrono::sys_days(std::chrono::year(2027) / 3 / 1));
  EXPECT_EQ(file.rules.grants.at(1).max_confidentiality, Confidentiality::secret);
}

TEST(Rules, what_rules_may_not_say_is_a_load_error) {
  const std::string t3 = "[[grant]]\ntier = \"T3\"\nprovider = \"acme\"\nmembers = [\"ana\"]\n";
  ASSERT_EQ(read(t3).problems, "");
  const std::pair<std::string, const char*> wrong[] = {
      {"[defaults]\nmax_tier = \"T3\"", "opens T2 and T3"},
      {"[defaults]\nmax_tier = \"T7\"", "max_tier"},
      {"[defaults]\nconfidentiality = \"classified\"", "confidentiality"},
      {"[defaults]\nclassify = \"x\"", "classify"},
      {"[[pin]]\nmatch = { host = \"x\" }", "host"},
      {"[[pin]]\nmatch = { member = \"*\" }", "without \"*\""},
      {"[[pin]]\nmax_confidentiality = \"secret\"", "max_confidentiality"},
      {"[[pin]]\nzones = [\"e u\"]", "zone"},
      {"[[grant]]\nprovider = \"acme\"", "tier"},
      {"[[grant]]\ntier = \"T1\"", "opens T2 or T3"},
      {"[[grant]]\ntier = \"T3\"\nmembers = [\"ana\"]", "one provider or one target"},
      {"[[grant]]\ntier = \"T3\"\nprovider = \"*\"\nmembers = [\"ana\"]", "without \"*\""},
      {"[[grant]]\ntier = \"T3\"\nprovider = \"acme\"", "members"},
      {"[[grant]]\ntier = \"T3\"\nprovider = \"acme\"\nmembers = []", "members"},
      {"[[grant]]\ntier = \"T3\"\nprovider = \"acme\"\nmembers = [\"role:*\"]", "without \"*\""},
      {t3 + "max_confidentiality = \"internal\"", "until detectors exist"},
      {t3 + "redact = [\"PERSON\"]", "detectors do not exist yet"},
      {t3 + "else = \"allow\"", "else"},
      {t3 + "expires = \"tomorrow\"", "expires"},
  };
  for (const auto& [text, expected] : wrong) EXPECT_THAT(read(text).problems, HasSubstr(expected)) << text;
}

TEST(Rules, rules_that_never_saw_a_file_are_validated_too) {
  Rules rules;
  rules.grants = {{.tier = Tier::t3, .members = {{false, "ana"}}}};
  EXPECT_FALSE(Engine::create(rules, {}));
  rules.grants = {t3_grant()};
  rules.grants[0].max_confidentiality = Confidentiality::internal;
  EXPECT_FALSE(Engine::create(rules, {}));
  rules.grants.clear();
  rules.defaults.max_tier = Tier::t2;
  EXPECT_FALSE(Engine::create(rules, {}));
}

TEST(Engine, targets_that_make_no_sense_are_refused) {
  EXPECT_FALSE(Engine::create({}, {facts("a", Tier::t0, "device"), facts("a", Tier::t1, "lan")}));
  EXPECT_FALSE(Engine::create({}, {facts("a", Tier::t0, "")}));
  EXPECT_FALSE(Engine::create({}, {facts("", Tier::t0, "device")}));
  std::vector<TargetFacts> many;
  for (int i = 0; i < 65; ++i) many.push_back(facts(std::to_string(i), Tier::t1, "zone" + std::to_string(i)));
  EXPECT_FALSE(Engine::create({}, many));
  many.pop_back();
  const auto whole = engine({}, many);
  EXPECT_EQ(whole->clear(declared(Confidentiality::secret), today).targets().size(), 64);
}

TEST(Engine, the_digest_names_rules_and_targets) {
  EXPECT_EQ(engine()->digest(), engine()->digest());
  Rules other = open_rules();
  other.grants[0].expires = today;
  EXPECT_NE(engine()->digest(), engine(other)->digest());
  auto targets = all_targets();
  targets[0].proven = false;
  EXPECT_NE(engine()->digest(), engine(open_rules(), targets)->digest());
}

TEST(Engine, known_zones_are_those_of_targets_and_rules) {
  Rules rules;
  rules.pins = {{.label = {.zones = labels::NameSet::of({"vault"})}}};
  EXPECT_TRUE(engine(rules)->knows_zone("vault"));
  EXPECT_TRUE(engine(rules)->knows_zone("lan"));
  EXPECT_FALSE(engine(rules)->knows_zone("moon"));
}

}  // namespace
}  // namespace molly::policy
