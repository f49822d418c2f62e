#include "policy/clearance.h"

#include <gmock/gmock.h>

#include "policy_fixture.h"

namespace molly::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;

const SovereigntyProfile public_request = declared(Confidentiality::public_);

TEST(Clearance, operations_only_remove_targets) {
  const Clearance whole = engine()->clear(public_request, today);
  EXPECT_THAT(whole.targets(), ElementsAre("nano", "office", "rack", "acme-large"));
  const Clearance fewer = whole.without("office");
  EXPECT_THAT(fewer.targets(), ElementsAre("nano", "rack", "acme-large"));
  const Clearance joined = fewer.joined_with({.confidentiality = Confidentiality::internal});
  EXPECT_THAT(joined.targets(), ElementsAre("nano", "rack"));
  EXPECT_THAT(joined.joined_with({}).targets(), ElementsAre("nano", "rack"));
  EXPECT_THAT(joined.joined_with({.zones = labels::NameSet::of({"device"})}).targets(), ElementsAre("nano"));
  EXPECT_THAT(joined.joined_with({.zones = labels::NameSet::none()}).targets(), IsEmpty());
  EXPECT_THAT(whole.without("unheard-of").targets(), ElementsAre("nano", "office", "rack", "acme-large"));
}

TEST(Clearance, what_was_removed_does_not_come_back) {
  const Clearance fewer = engine()->clear(public_request, today).without("nano");
  EXPECT_FALSE(fewer.joined_with({}).allows("nano"));
  EXPECT_FALSE(fewer.intersect({.max_tier = Tier::t3, .declared_public = true}).allows("nano"));
}

TEST(Clearance, tainted_context_closes_t3) {
  const Clearance whole = engine()->clear(public_request, today);
  EXPECT_FALSE(whole.joined_with({.integrity = labels::Integrity::tainted}).allows("acme-large"));
  EXPECT_TRUE(whole.joined_with({.integrity = labels::Integrity::tainted}).allows("rack"));
}

TEST(Clearance, a_carried_clearance_only_narrows) {
  const Clearance whole = engine()->clear(public_request, today);
  for (const Tier tier : all_tiers)
    for (const auto& zones : {labels::NameSet::all(), labels::NameSet::none(), labels::NameSet::of({"device", "eu"})})
      for (const auto confidentiality : {Confidentiality::public_, Confidentiality::secret})
        for (const bool declared_public : {false, true}) {
          const CarriedClearance carried{
              tier, zones, labels::NameSet::all(), declared_public, {.confidentiality = confidentiality}};
          const Clearance narrowed = whole.intersect(carried);
          EXPECT_THAT(narrowed.targets(), IsSubsetOf(whole.targets()));
          for (const auto target : narrowed.targets()) {
            EXPECT_LE(narrowed.engine().find(target)->tier, tier);
            EXPECT_TRUE(zones.contains(narrowed.engine().find(target)->zone));
          }
        }
}

TEST(Clearance, a_request_with_a_carried_clearance_is_cleared_as_if_it_were_narrowed_later) {
  SovereigntyProfile profile = public_request;
  profile.carried = CarriedClearance{.max_tier = Tier::t2, .zones = labels::NameSet::of({"eu"})};
  const Clearance direct = engine()->clear(profile, today);
  EXPECT_EQ(direct.targets(), engine()->clear(public_request, today).intersect(*profile.carried).targets());
  EXPECT_THAT(direct.targets(), ElementsAre("rack"));
}

TEST(Clearance, what_another_molly_declared_public_counts_as_declared) {
  SovereigntyProfile profile = public_request;
  profile.declared.reset();
  profile.carried = CarriedClearance{.max_tier = Tier::t3, .declared_public = true};
  EXPECT_TRUE(engine()->clear(profile, today).allows("acme-large"));
  profile.carried->declared_public = false;
  EXPECT_FALSE(engine()->clear(profile, today).allows("acme-large"));
}

TEST(Clearance, it_carries_no_more_than_targets_and_grants_reach) {
  const auto carried_by = [](const SovereigntyProfile& profile) { return engine()->clear(profile, today).to_carry(); };
  EXPECT_EQ(carried_by(public_request).max_tier, Tier::t3);
  EXPECT_EQ(carried_by(public_request).providers, labels::NameSet::of({"acme"}));
  const SovereigntyProfile secret = declared(Confidentiality::secret);
  EXPECT_EQ(carried_by(secret).max_tier, Tier::t1);
  EXPECT_EQ(carried_by(secret).zones, labels::NameSet::of({"device", "lan"}));
  EXPECT_EQ(carried_by(secret).providers, labels::NameSet::none());
  EXPECT_EQ(engine()->clear(secret, today).serialise(),
            "tier=T1;zones=device+lan;providers=-;declared=no;label=secret/trusted/*/*");
}

TEST(Clearance, what_it_carries_never_exceeds_what_was_carried_to_it) {
  SovereigntyProfile profile = public_request;
  profile.carried = CarriedClearance{Tier::t2, labels::NameSet::of({"lan"}), labels::NameSet::none(), true, {}};
  const CarriedClearance onward = engine()->clear(profile, today).to_carry();
  EXPECT_LE(onward.max_tier, Tier::t2);
  EXPECT_TRUE(labels::is_subset(onward.zones, profile.carried->zones));
  EXPECT_TRUE(labels::is_subset(onward.providers, profile.carried->providers));
}

TEST(Clearance, a_reload_does_not_change_what_was_decided) {
  auto first = engine();
  const Clearance clearance = first->clear(public_request, today);
  first = engine(Rules{}, {});
  EXPECT_TRUE(clearance.joined_with({}).allows("rack"));
}

TEST(CarriedClearance, only_its_exact_form_is_understood) {
  const std::string text = "tier=T1;zones=device+lan;providers=-;declared=no;label=internal/trusted/*/*";
  EXPECT_EQ(serialise(*parse_carried(text)), text);
  for (const char* wrong :
       {"", "T1", "tier=T4;zones=*;providers=-;declared=no;label=internal/trusted/*/*",
        "zones=*;tier=T1;providers=-;declared=no;label=internal/trusted/*/*",
        "tier=T1;zones=*;providers=-;declared=yes;label=internal/trusted/*/*",
        "tier=T1;zones=*;providers=-;declared=no;label=internal/trusted/*",
        "tier=T1;zones=*;providers=-;declared=no;label=internal/trusted/*/*;x=1", "tier=T1;zones=*;declared=no"})
    EXPECT_FALSE(parse_carried(wrong)) << wrong;
}

TEST(Explain, every_target_is_named_with_its_rule) {
  const Clearance clearance = engine()->clear(declared(Confidentiality::secret), today);
  const Decision decision = explain(clearance);
  ASSERT_EQ(decision.targets.size(), 5);
  EXPECT_TRUE(decision.targets[0].allowed);
  EXPECT_EQ(decision.targets[2].code, "confidentiality");
  EXPECT_THAT(to_text(decision), HasSubstr("- rack (T2, eu): The request is secret as declared, and grant 2 (T2) lets "
                                           "at most confidential pass."));
}

TEST(Explain, a_refusal_names_each_target) {
  SovereigntyProfile profile = public_request;
  profile.label.zones = labels::NameSet::of({"moon"});
  const Clearance clearance = engine()->clear(profile, today);
  ASSERT_TRUE(clearance.empty());
  const Error error = refusal(clearance);
  EXPECT_EQ(error.code, ErrorCode::forbidden);
  for (const TargetFacts& target : all_targets()) EXPECT_THAT(error.message, HasSubstr(target.name));
}

}  // namespace
}  // namespace molly::policy
