#include "store/data_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "../temporary_folder.h"

namespace molly::store {
namespace {

using testing::HasSubstr;

::mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(DataFolder, is_made_for_its_owner_only) {
  const TemporaryFolder temporary;
  const auto root = temporary.path() / "a/b/molly";
  const auto folder = open_data_folder(root);
  ASSERT_TRUE(folder.has_value()) << folder.error().message;
  EXPECT_EQ(mode_of(root.parent_path()), 0700U);
  for (const auto& path : {root, folder->audit(), folder->traces(), folder->keys(), folder->run(), folder->logs()}) {
    EXPECT_EQ(mode_of(path), 0700U) << path;
  }
  EXPECT_TRUE(open_data_folder(root).has_value());
}

TEST(DataFolder, that_is_mollys_is_closed_to_others) {
  const TemporaryFolder temporary;
  const auto folder = open_data_folder(temporary.path()).value();
  std::ofstream(folder.database()) << "";
  ASSERT_EQ(::chmod(folder.root.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder.keys().c_str(), 0777), 0);
  ASSERT_TRUE(open_data_folder(temporary.path()).has_value());
  EXPECT_EQ(mode_of(folder.root), 0700U);
  EXPECT_EQ(mode_of(folder.keys()), 0700U);
}

TEST(DataFolder, with_other_things_in_it_is_not_changed_but_refused) {
  const TemporaryFolder temporary;
  std::ofstream(temporary.path() / "letter.txt") << "mine";
  ASSERT_EQ(::chmod(temporary.path().c_str(), 0755), 0);
  const auto folder = open_data_folder(temporary.path());
  ASSERT_FALSE(folder.has_value());
  EXPECT_THAT(folder.error().message, HasSubstr("run: chmod 700 " + temporary.path().string()));
  EXPECT_EQ(mode_of(temporary.path()), 0755U);
}

TEST(DataFolder, of_another_user_is_refused) {
  const TemporaryFolder temporary;
  if (::geteuid() != 0 || ::chown(temporary.path().c_str(), 65534, 65534) != 0) GTEST_SKIP() << "cannot change owners";
  const auto folder = open_data_folder(temporary.path());
  ASSERT_FALSE(folder.has_value());
  EXPECT_THAT(folder.error().message, HasSubstr("belongs to another user"));
}

TEST(DataFolder, that_is_a_file_is_refused) {
  const TemporaryFolder temporary;
  std::ofstream(temporary.path() / "file") << "x";
  EXPECT_THAT(open_data_folder(temporary.path() / "file").error().message, HasSubstr("is not a folder"));
  EXPECT_THAT(open_data_folder(temporary.path() / "file/below").error().message, HasSubstr("cannot be made"));
}

TEST(DataFolder, stands_where_xdg_says) {
  ::setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(data_path(std::nullopt).value(), "/data/molly");
  ::setenv("XDG_DATA_HOME", "relative", 1);
  ::setenv("HOME", "/home/ana", 1);
  EXPECT_EQ(data_path(std::nullopt).value(), "/home/ana/.local/share/molly");
  EXPECT_EQ(data_path("/srv/molly/").value(), "/srv/molly");
  ::unsetenv("XDG_DATA_HOME");
}

}  // namespace
}  // namespace molly::store
