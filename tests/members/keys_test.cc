#include "members/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "members/key_text.h"

namespace molly::members {
namespace {

using testing::HasSubstr;
using testing::Not;

class KeysTest : public testing::Test {
 protected:
  KeysTest() {
    database_ = std::make_unique<store::Database>(open_database());
    keys_ = Keys::open(folder_, *database_).value();
  }

  store::Database open_database() {
    const std::vector<store::Schema> schemas{schema()};
    return store::Database::open(folder_ / "molly.db", schemas).value();
  }
  CreatedKey create(const NewKey& wanted = {.label = "laptop"}) { return keys_->create(wanted).value(); }
  std::string refusal(std::string_view presented) const {
    const auto verified = keys_->verify(presented);
    if (verified) return "accepted";
    EXPECT_EQ(verified.error().code, ErrorCode::unauthenticated);
    return verified.error().message;
  }

  TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
  std::unique_ptr<store::Database> database_;
  std::unique_ptr<Keys> keys_;
};

TEST_F(KeysTest, a_created_key_is_recognised_with_all_it_carries) {
  EXPECT_FALSE(keys_->any_key_exists());
  const auto in_an_hour =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) + std::chrono::hours(1);
  const auto created = create({.label = "laptop",
                               .member = "ana",
                               .roles = {"analyst", "admin"},
                               .scope = {Tier::t1, {"office", "fast"}},
                               .expires = in_an_hour});
  const auto verified = keys_->verify(created.text.reveal());
  ASSERT_TRUE(verified.has_value()) << verified.error().message;
  EXPECT_EQ(**verified, created.key);
  EXPECT_EQ((*verified)->member, "ana");
  EXPECT_THAT((*verified)->roles, testing::ElementsAre("analyst", "admin"));
  EXPECT_EQ((*verified)->scope.max_tier, Tier::t1);
  EXPECT_THAT((*verified)->scope.models, testing::ElementsAre("office", "fast"));
  EXPECT_TRUE(keys_->any_key_exists());
}

TEST_F(KeysTest, a_key_has_the_documented_form) {
  const auto created = create();
  EXPECT_THAT(std::string(created.text.reveal()),
              testing::MatchesRegex("molly_[0-9a-f]{8}_[A-Za-z0-9_-]{43}_[0-9A-Za-z]{6}"));
  EXPECT_EQ(created.key.member, "laptop");
}

TEST_F(KeysTest, every_single_slip_is_called_one_and_not_repeated) {
  const auto created = create();
  const std::string text(created.text.reveal());
  for (std::size_t i = 6; i < text.size(); ++i) {
    std::string slip = text;
    slip[i] = slip[i] == '7' ? '8' : '7';
    const std::string message = refusal(slip);
    EXPECT_THAT(message, HasSubstr("mistyped")) << i;
    EXPECT_THAT(message, Not(HasSubstr(slip.substr(16, 8))));
  }
  EXPECT_THAT(refusal(text.substr(0, 40)), HasSubstr("mistyped or cut short"));
  EXPECT_THAT(refusal(text + "x"), HasSubstr("mistyped"));
  EXPECT_THAT(refusal("sk-something-else"), HasSubstr("not a Molly key"));
  EXPECT_THAT(refusal(""), HasSubstr("not a Molly key"));
}

TEST_F(KeysTest, a_well_formed_key_with_a_wrong_secret_is_unknown) {
  const auto created = create();
  const auto id = parse_key_id(created.key.id).value();
  SecretBytes guess{};
  EXPECT_EQ(refusal(format_key(id, guess).reveal()), "the key is not known here");
  EXPECT_EQ(refusal(format_key(id + 1, guess).reveal()), "the key is not known here");
}

TEST_F(KeysTest, a_revoked_key_is_refused_at_once_and_stays_listed) {
  const auto created = create();
  ASSERT_TRUE(keys_->revoke(created.key.id).has_value());
  EXPECT_THAT(refusal(created.text.reveal()), HasSubstr("was revoked"));
  EXPECT_FALSE(keys_->any_key_exists());
  const auto first = keys_->list().value().at(0).revoked;
  EXPECT_TRUE(first.has_value());
  ASSERT_TRUE(keys_->revoke(created.key.id).has_value());
  EXPECT_EQ(keys_->list().value().at(0).revoked, first);
}

TEST_F(KeysTest, revoking_what_is_no_key_fails_without_repeating_it) {
  EXPECT_EQ(keys_->revoke("00000000").error().code, ErrorCode::not_found);
  const auto created = create();
  const auto whole = keys_->revoke(created.text.reveal());
  ASSERT_FALSE(whole.has_value());
  EXPECT_THAT(whole.error().message, Not(HasSubstr(std::string(created.text.reveal()))));
}

TEST_F(KeysTest, an_expired_key_is_refused) {
  const auto created = create();
  ASSERT_TRUE(database_->writer()
                  .write([](store::Connection& connection) -> Result<void> {
                    auto done = connection.execute("UPDATE access_keys SET expires = 1");
                    if (!done) return std::unexpected(done.error());
                    return {};
                  })
                  .has_value());
  ASSERT_TRUE(keys_->reload().has_value());
  EXPECT_THAT(refusal(created.text.reveal()), HasSubstr("has expired"));
  EXPECT_FALSE(keys_->any_key_exists());
}

TEST_F(KeysTest, senseless_keys_are_not_made) {
  EXPECT_EQ(keys_->create({.label = ""}).error().field, "label");
  EXPECT_EQ(keys_->create({.label = "two\nlines"}).error().field, "label");
  EXPECT_EQ(keys_->create({.label = "x", .roles = {""}}).error().field, "roles");
  EXPECT_EQ(keys_->create({.label = "x", .expires = std::chrono::sys_seconds()}).error().field, "expires");
}

// As the command line does while the server runs.
TEST_F(KeysTest, a_key_made_through_another_connection_counts_without_a_call) {
  auto other_database = open_database();
  const auto other = Keys::open(folder_, other_database).value();
  const auto created = other->create({.label = "new"}).value();
  const auto wait_for = [&](bool accepted) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (keys_->verify(created.text.reveal()).has_value() != accepted &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(keys_->verify(created.text.reveal()).has_value(), accepted);
  };
  wait_for(true);
  ASSERT_TRUE(other->revoke(created.key.id).has_value());
  wait_for(false);
}

TEST_F(KeysTest, nothing_on_the_disk_holds_the_secret) {
  const auto created = create();
  const std::string secret(created.text.reveal().substr(15, 43));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(content.find(secret), std::string::npos) << entry.path();
  }
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "pepper").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(status.st_size, 32);
}

TEST_F(KeysTest, a_lost_pepper_is_an_error_and_not_replaced) {
  create();
  std::filesystem::remove(folder_ / "pepper");
  const auto reopened = Keys::open(folder_, *database_);
  ASSERT_FALSE(reopened.has_value());
  EXPECT_THAT(reopened.error().message, HasSubstr("restore it from a backup"));
}

TEST_F(KeysTest, a_pepper_that_others_can_read_is_refused) {
  ASSERT_EQ(::chmod((folder_ / "pepper").c_str(), 0644), 0);
  EXPECT_THAT(Keys::open(folder_, *database_).error().message, HasSubstr("chmod 600"));
}

TEST_F(KeysTest, are_verified_while_others_come_and_go) {
  const auto kept = create();
  std::atomic<bool> stop = false;
  std::vector<std::jthread> threads;
  threads.reserve(2);
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) ASSERT_TRUE(keys_->verify(kept.text.reveal()).has_value());
    });
  }
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(keys_->revoke(create().key.id).has_value());
  stop = true;
}

TEST_F(KeysTest, verifying_takes_the_time_printed_here) {
  const auto created = create();
  constexpr int rounds = 100'000;
  const auto begin = ::clock();
  for (int i = 0; i < rounds; ++i) ASSERT_TRUE(keys_->verify(created.text.reveal()).has_value());
  const double nanoseconds = static_cast<double>(::clock() - begin) * (1e9 / CLOCKS_PER_SEC) / rounds;
  std::printf("verify: %.0f ns of processor time\n", nanoseconds);
}

}  // namespace
}  // namespace molly::members
