#include "policy/permit.h"

#include <gmock/gmock.h>

#include <type_traits>

#include "audit/digest.h"
#include "policy_fixture.h"

namespace molly::policy {
namespace {

using ::testing::HasSubstr;

using PermitTest = LogFixture;

const SovereigntyProfile public_request = declared(Confidentiality::public_);

TEST_F(PermitTest, a_permit_is_spent_once_for_its_target_and_bytes) {
  const Clearance clearance = engine()->clear(public_request, today);
  const auto payload = accept("body");
  auto permit =
      authorise<Tier::t1>(clearance, "office", payload, kernel_receipt(clearance, "office", payload.digest()));
  ASSERT_TRUE(permit);
  EXPECT_EQ(permit->trace(), trace_);
  EXPECT_TRUE(permit->spend("office", payload.digest()));
  const auto again = permit->spend("office", payload.digest());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("already used"));
}

TEST_F(PermitTest, a_permit_that_was_moved_from_is_spent) {
  const Clearance clearance = engine()->clear(public_request, today);
  const auto payload = accept("body");
  auto permit = authorise<Tier::t0>(clearance, "nano", payload, kernel_receipt(clearance, "nano", payload.digest()));
  ASSERT_TRUE(permit);
  Permit<Tier::t0> moved = std::move(*permit);
  EXPECT_FALSE(permit->spend("nano", payload.digest()));
  EXPECT_TRUE(moved.spend("nano", payload.digest()));
}

TEST_F(PermitTest, a_permit_fits_no_other_target_and_no_other_bytes) {
  const Clearance clearance = engine()->clear(public_request, today);
  const auto payload = accept("body");
  const auto make = [&] {
    return *authorise<Tier::t0>(clearance, "nano", payload, kernel_receipt(clearance, "nano", payload.digest()));
  };
  auto first = make();
  EXPECT_FALSE(first.spend("office", payload.digest()));
  EXPECT_FALSE(first.spend("nano", payload.digest())) << "a wrong attempt uses it up";
  EXPECT_FALSE(make().spend("nano", audit::sha256("other")));
}

TEST_F(PermitTest, a_target_outside_the_clearance_gets_no_permit) {
  const Clearance clearance = engine()->clear(declared(Confidentiality::secret), today);
  const auto payload = accept("body");
  EXPECT_FALSE(authorise<Tier::t2>(clearance, "rack", payload, synced_receipt(clearance, "rack", payload.digest())));
  const Clearance smaller = clearance.without("nano");
  EXPECT_FALSE(authorise<Tier::t0>(smaller, "nano", payload, kernel_receipt(clearance, "nano", payload.digest())));
}

TEST_F(PermitTest, a_target_gets_no_permit_of_another_tier) {
  const Clearance clearance = engine()->clear(public_request, today);
  const auto payload = accept("body");
  EXPECT_FALSE(authorise<Tier::t0>(clearance, "rack", payload, kernel_receipt(clearance, "rack", payload.digest())));
}

TEST_F(PermitTest, the_receipt_must_be_of_this_dispatch) {
  const Clearance clearance = engine()->clear(public_request, today);
  const auto payload = accept("body");
  const auto with = [&](audit::Receipt receipt) {
    return authorise<Tier::t0>(clearance, "nano", payload, std::move(receipt)).has_value();
  };
  EXPECT_TRUE(with(kernel_receipt(clearance, "nano", payload.digest())));
  EXPECT_FALSE(with(kernel_receipt(clearance, "office", payload.digest())));
  EXPECT_FALSE(with(kernel_receipt(clearance, "nano", audit::sha256("other"))));
  audit::Record other = dispatch_record(clearance, "nano", payload.digest(), trace_, "");
  other.kind = audit::Kind::admitted;
  EXPECT_FALSE(with(*log_->append(other)));
}

TEST_F(PermitTest, t2_and_t3_need_a_record_on_disk) {
  const Clearance clearance = engine()->clear(public_request, today);
  for (const char* target : {"rack", "acme-large"}) {
    auto payload = accept("body");
    auto kernel = kernel_receipt(clearance, target, payload.digest());
    EXPECT_FALSE(authorise(clearance, target, std::move(payload), std::move(kernel)));
    payload = accept("body");
    auto synced = synced_receipt(clearance, target, payload.digest());
    EXPECT_TRUE(authorise(clearance, target, std::move(payload), std::move(synced)));
  }
}

TEST_F(PermitTest, while_the_log_fails_only_local_targets_get_permits) {
  const Clearance clearance = engine()->clear(public_request, today);
  write_error_ = EIO;
  EXPECT_FALSE(log_->append(audit::Record{}));
  for (const char* target : {"nano", "office"}) {
    auto payload = accept("body");
    auto receipt = log_->unrecorded(dispatch_record(clearance, target, payload.digest(), trace_, ""));
    ASSERT_TRUE(receipt);
    EXPECT_TRUE(authorise(clearance, target, std::move(payload), std::move(*receipt)));
  }
  for (const char* target : {"rack", "acme-large"}) {
    auto payload = accept("body");
    EXPECT_FALSE(log_->unrecorded(dispatch_record(clearance, target, payload.digest(), trace_, "")));
    // Even a record that lies about its tier opens nothing.
    auto lie = dispatch_record(clearance, target, payload.digest(), trace_, "");
    lie.tier = Tier::t0;
    EXPECT_FALSE(authorise(clearance, target, std::move(payload), std::move(*log_->unrecorded(lie))));
  }
}

TEST_F(PermitTest, a_payload_becomes_public_only_when_declared_so_and_still_so) {
  const Clearance clearance = engine()->clear(public_request, today);
  EXPECT_TRUE(as_public(clearance, accept("body")));
  EXPECT_EQ(as_public(clearance, accept("body"))->digest(), audit::sha256("body"));
  EXPECT_FALSE(as_public(clearance.joined_with({.confidentiality = Confidentiality::internal}), accept("body")));
  SovereigntyProfile undeclared = public_request;
  undeclared.declared.reset();
  Rules lax = open_rules();
  lax.defaults.confidentiality = Confidentiality::public_;
  EXPECT_FALSE(as_public(engine(lax)->clear(undeclared, today), accept("body")));
}

TEST_F(PermitTest, the_tier_known_at_run_time_chooses_the_dispatch) {
  const Clearance clearance = engine()->clear(public_request, today);
  for (const TargetFacts& target : all_targets()) {
    if (!clearance.allows(target.name)) continue;
    auto payload = accept("body");
    auto receipt = synced_receipt(clearance, target.name, payload.digest());
    auto dispatch = authorise(clearance, target.name, std::move(payload), std::move(receipt));
    ASSERT_TRUE(dispatch) << dispatch.error().message;
    EXPECT_EQ(std::visit([](auto& any) { return any.at; }, *dispatch), target.tier);
    EXPECT_TRUE(std::visit([&](auto& any) { return any.permit.spend(target.name, any.payload.digest()); }, *dispatch));
  }
}

TEST_F(PermitTest, the_dispatch_record_says_what_was_decided) {
  const Clearance clearance = engine()->clear(public_request, today);
  const auto payload = accept("body");
  const audit::Record record = dispatch_record(clearance, "rack", payload.digest(), trace_, "0a1b2c3d");
  EXPECT_EQ(record.tier, Tier::t2);
  EXPECT_EQ(record.policy, engine()->digest());
  EXPECT_EQ(record.label, "public/trusted/*/*");
  EXPECT_EQ(record.payload, audit::sha256("body"));
}

}  // namespace
}  // namespace molly::policy
