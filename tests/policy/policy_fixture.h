#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <string>

#include "audit/log.h"
#include "policy/engine.h"
#include "policy/explain.h"
#include "policy/permit.h"

namespace molly::policy {

using labels::Confidentiality;

inline constexpr auto today = std::chrono::sys_days(std::chrono::year(2026) / 12 / 1);

inline TargetFacts facts(std::string name, Tier tier, std::string zone, std::string provider = {}) {
  return {std::move(name), tier, std::move(zone), std::move(provider), "model", true, "A test said so."};
}

// One target of each tier, and a second external one.
inline std::vector<TargetFacts> all_targets() {
  return {facts("nano", Tier::t0, "device"), facts("office", Tier::t1, "lan"), facts("rack", Tier::t2, "eu"),
          facts("acme-large", Tier::t3, "eu", "acme"), facts("other-large", Tier::t3, "us", "other")};
}

inline Grant t3_grant(std::string provider = "acme") {
  return {.tier = Tier::t3, .provider = std::move(provider), .members = {{false, "ana"}}};
}

inline Rules open_rules() {
  Rules rules;
  rules.grants = {t3_grant(), {.tier = Tier::t2, .max_confidentiality = Confidentiality::confidential}};
  return rules;
}

inline std::shared_ptr<const Engine> engine(Rules rules = open_rules(),
                                            std::vector<TargetFacts> targets = all_targets()) {
  auto made = Engine::create(std::move(rules), std::move(targets));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

inline SovereigntyProfile declared(Confidentiality confidentiality, std::string member = "ana") {
  SovereigntyProfile profile;
  profile.declared = confidentiality;
  profile.member = std::move(member);
  return profile;
}

// A log in a folder of its own, whose disk can be made to fail.
class LogFixture : public ::testing::Test {
 protected:
  LogFixture() {
    std::string pattern = (std::filesystem::temp_directory_path() / "molly-policy-XXXXXX").string();
    home_ = ::mkdtemp(pattern.data());
    log_ = *audit::Log::open(home_ / "audit", {.fault = [this](audit::DiskCall call) {
                               return audit::Fault{call == audit::DiskCall::write ? write_error_.load() : 0, 0};
                             }});
  }
  ~LogFixture() override {
    log_.reset();
    std::filesystem::remove_all(home_);
  }

  audit::Receipt kernel_receipt(const Clearance& clearance, std::string_view target, const Digest& payload) {
    return *log_->append(dispatch_record(clearance, target, payload, trace_, "0a1b2c3d"));
  }

  audit::Receipt synced_receipt(const Clearance& clearance, std::string_view target, const Digest& payload) {
    std::promise<Result<audit::Receipt>> promise;
    log_->append_synced(dispatch_record(clearance, target, payload, trace_, "0a1b2c3d"),
                        [&](Result<audit::Receipt> receipt) { promise.set_value(std::move(receipt)); });
    return *promise.get_future().get();
  }

  std::filesystem::path home_;
  std::atomic<int> write_error_ = 0;
  std::unique_ptr<audit::Log> log_;
  TraceId trace_ = TraceId::generate();
};

}  // namespace molly::policy
