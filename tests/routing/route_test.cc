#include "routing/route.h"

#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <sstream>

namespace molly::routing {
namespace {

struct Case {
  std::string name;
  std::deque<TargetDescription> descriptions;
  std::vector<TargetView> views;
  Selection selection;
  CapabilityProfile profile;
  std::string expected;
  int line = 0;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::optional<std::string> value_of(const std::string& word, std::string_view key) {
  if (!word.starts_with(std::string(key) + "=")) return std::nullopt;
  return word.substr(key.size() + 1);
}

Health parse_health(const std::string& text) {
  for (const Health health : {Health::ready, Health::cold, Health::busy, Health::failing}) {
    if (to_string(health) == text) return health;
  }
  ADD_FAILURE() << "unknown health " << text;
  return Health::failing;
}

void read_target(Case& out, const std::vector<std::string>& line) {
  TargetDescription& target = out.descriptions.emplace_back();
  target.name = line.at(1);
  target.tools = false;
  TargetView view{&target, Health::ready, true};
  for (const std::string& word : line) {
    if (const auto v = value_of(word, "tier")) target.tier = parse_tier(*v).value();
    if (const auto v = value_of(word, "health")) view.health = parse_health(*v);
    if (const auto v = value_of(word, "context")) target.context_length = static_cast<std::uint32_t>(std::stoul(*v));
    if (const auto v = value_of(word, "price")) target.price = Price{std::stol(*v), 0};
    if (word == "image") target.modalities.image = true;
    if (word == "tools") target.tools = true;
    if (word == "denied") view.cleared = false;
  }
  out.views.push_back(view);
}

void read_ask(Case& out, const std::vector<std::string>& line) {
  for (const std::string& word : line) {
    if (const auto v = value_of(word, "model"); v && *v != "auto") {
      out.selection.automatic = false;
      std::istringstream names(*v);
      for (std::string name; std::getline(names, name, ',');) out.selection.names.push_back(name);
    }
    if (const auto v = value_of(word, "bound")) out.profile.token_upper_bound = std::stoul(*v);
    if (const auto v = value_of(word, "max_tokens")) out.profile.max_tokens = std::stoul(*v);
    if (word == "image") out.profile.needs.image = true;
    if (word == "tools") out.profile.needs_tools = true;
  }
}

std::deque<Case> read_cases() {
  std::ifstream in(MOLLY_TEST_DATA "/cases.txt");
  std::deque<Case> cases;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto parts = words(line);
    if (parts.empty() || parts[0][0] == '#') continue;
    if (parts[0] == "case") {
      cases.push_back({.name = line.substr(5), .line = number});
    } else if (parts[0] == "target") {
      read_target(cases.back(), parts);
    } else if (parts[0] == "ask") {
      read_ask(cases.back(), parts);
    } else {
      cases.back().expected += line + "\n";
    }
  }
  return cases;
}

std::string rendered(const Case& c, const Route& route) {
  std::string out = "route";
  for (const Candidate& candidate : route.candidates) out += " " + c.descriptions[candidate.target].name;
  out += "\n";
  for (const Rejection& rejection : route.rejections) {
    out += "out " + c.descriptions[rejection.target].name + " " + std::string(to_string(rejection.fit)) + "\n";
  }
  return out;
}

TEST(Route, matches_every_case_of_the_table) {
  const auto cases = read_cases();
  ASSERT_GE(cases.size(), 12u);
  for (const Case& c : cases) {
    EXPECT_EQ(rendered(c, choose(c.views, c.selection, c.profile)), c.expected) << "line " << c.line << ": " << c.name;
  }
}

TEST(Route, never_offers_what_is_not_cleared) {
  TargetDescription description{.name = "x"};
  for (int bits = 0; bits < 16; ++bits) {
    description.modalities.image = (bits & 1) != 0;
    description.tools = (bits & 2) != 0;
    const std::vector<TargetView> views{{&description, (bits & 4) != 0 ? Health::ready : Health::failing, false}};
    const Selection selection{.automatic = (bits & 8) != 0, .names = {"x"}};
    EXPECT_TRUE(choose(views, selection, {}).candidates.empty());
  }
}

TEST(Route, context_needs_room_for_at_least_one_token) {
  EXPECT_TRUE(fits_context(99, 0, 100));
  EXPECT_FALSE(fits_context(100, 0, 100));
  EXPECT_FALSE(fits_context(100, 1, 100));
  EXPECT_FALSE(fits_context(UINT64_MAX, UINT64_MAX, 100));
}

}  // namespace
}  // namespace molly::routing
