#include "config/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "config/live.h"
#include "config/watcher.h"

namespace molly::config {
namespace {

using testing::HasSubstr;

class ConfigFolder : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CONFIG_HOME"); }

  void write(const std::filesystem::path& name, std::string_view content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }

  TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(ConfigFolder, is_empty_where_the_default_file_is_absent) {
  auto found = find_config(std::nullopt);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, folder_ / "molly/molly.toml");
  EXPECT_TRUE(found->document.root().keys().empty());
}

TEST_F(ConfigFolder, holds_the_default_file) {
  write("molly/molly.toml", "a = 1\n");
  auto found = find_config(std::nullopt);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->document.root().integer("a"), 1);
}

TEST_F(ConfigFolder, must_hold_a_file_that_was_named) {
  const auto found = find_config(folder_ / "absent.toml");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, HasSubstr("absent.toml cannot be read: there is no such file"));
}

TEST_F(ConfigFolder, refuses_folders_and_files_without_end) {
  EXPECT_FALSE(load_file(folder_).has_value());
  EXPECT_FALSE(load_file("/dev/zero").has_value());
  write("long.toml", std::string((4 << 20) + 1, '#'));
  EXPECT_THAT(load_file(folder_ / "long.toml").error().message, HasSubstr("longer than 4 MiB"));
}

TEST_F(ConfigFolder, changes_are_noticed_whichever_way_they_are_made) {
  using std::chrono::milliseconds;
  boost::asio::io_context context;
  int changes = 0;
  Watcher watcher(context.get_executor(), folder_ / "molly.toml", [&] { ++changes; }, milliseconds(1));
  const auto run_until = [&](int wanted) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (changes < wanted && std::chrono::steady_clock::now() < deadline) context.run_one_for(milliseconds(100));
    EXPECT_EQ(changes, wanted);
  };
  context.run_for(milliseconds(5));
  EXPECT_EQ(changes, 0);
  write("molly.toml", "a = 1\n");
  run_until(1);
  write("new", "a = 2\n");
  std::filesystem::rename(folder_ / "new", folder_ / "molly.toml");
  run_until(2);
  std::filesystem::remove(folder_ / "molly.toml");
  run_until(3);
}

TEST_F(ConfigFolder, watcher_is_silent_after_its_end) {
  boost::asio::io_context context;
  int changes = 0;
  {
    Watcher watcher(context.get_executor(), folder_ / "molly.toml", [&] { ++changes; }, std::chrono::milliseconds(1));
  }
  write("molly.toml", "a = 1\n");
  context.run_for(std::chrono::milliseconds(20));
  EXPECT_EQ(changes, 0);
}

TEST(Live, shows_readers_the_old_value_or_the_new_one_and_never_a_mixture) {
  struct Pair {
    int left;
    int right;
  };
  Live<Pair> live(Pair{0, 0});
  const auto first = live.snapshot();
  std::atomic<bool> stop = false;
  std::vector<std::jthread> readers;
  readers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      int last = 0;
      while (!stop) {
        const auto now = live.snapshot();
        ASSERT_EQ(now->left, now->right);
        ASSERT_GE(now->left, last);
        last = now->left;
      }
    });
  }
  for (int i = 1; i <= 20'000; ++i) live.replace(Pair{i, i});
  stop = true;
  readers.clear();
  EXPECT_EQ(live.snapshot()->left, 20'000);
  EXPECT_EQ(first->left, 0);
}

}  // namespace
}  // namespace molly::config
