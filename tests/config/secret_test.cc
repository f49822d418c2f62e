#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../temporary_folder.h"
#include "config/section.h"

namespace molly::config {
namespace {

using testing::HasSubstr;
using testing::Not;

class SecretFile : public testing::Test {
 protected:
  // A file that belongs to an ordinary user, also where the tests run as root.
  void write(const std::string& name, std::string_view content, ::mode_t mode) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << content;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }

  Document parse(const std::string& line) { return Document::parse(line, (folder_ / "molly.toml").string()); }

  static std::string message(Document& document) {
    const auto verdict = document.finish();
    return verdict ? "" : verdict.error().message;
  }

  TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(SecretFile, is_read_relative_to_the_configuration_and_without_its_line_end) {
  write("key", "topsecret\n", 0600);
  auto document = parse("key = \"file:key\"");
  EXPECT_EQ(document.root().secret("key").value().reveal(), "topsecret");
  EXPECT_EQ(message(document), "");
}

TEST_F(SecretFile, must_not_be_readable_by_others) {
  write("key", "topsecret", 0640);
  struct stat status{};
  ASSERT_EQ(::stat((folder_ / "key").c_str(), &status), 0);
  // Root's files may be shared on purpose; give ours to somebody.
  if (::geteuid() == 0 && ::chown((folder_ / "key").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "cannot change owners";
  auto document = parse("key = \"file:key\"");
  EXPECT_FALSE(document.root().secret("key").has_value());
  const std::string problem = message(document);
  EXPECT_THAT(problem, testing::AnyOf(HasSubstr("run: chmod 600"), HasSubstr("belongs to another user")));
  EXPECT_THAT(problem, HasSubstr(":1:7: key: "));
  EXPECT_THAT(problem, Not(HasSubstr("topsecret")));
}

TEST_F(SecretFile, must_exist_and_hold_something) {
  write("empty", "\n", 0600);
  for (const char* source : {"file:absent", "file:empty", "file:.", "file:"}) {
    auto document = parse("key = \"" + std::string(source) + "\"");
    EXPECT_FALSE(document.root().secret("key").has_value()) << source;
    EXPECT_THAT(message(document), HasSubstr(":1:7: key: "));
  }
}

TEST_F(SecretFile, is_bounded) {
  write("key", std::string(70'000, 'x'), 0600);
  auto document = parse("key = \"file:key\"");
  EXPECT_FALSE(document.root().secret("key").has_value());
  EXPECT_THAT(message(document), HasSubstr("longer than 64 KiB"));
}

TEST(Secret, comes_from_the_environment) {
  ASSERT_EQ(::setenv("MOLLY_TEST_SECRET", "topsecret", 1), 0);
  auto document = Document::parse("key = \"env:MOLLY_TEST_SECRET\"", "f");
  EXPECT_EQ(document.root().secret("key").value().reveal(), "topsecret");
  EXPECT_TRUE(document.finish().has_value());
}

TEST(Secret, says_which_variable_is_not_set) {
  ::unsetenv("MOLLY_TEST_ABSENT");
  auto document = Document::parse("key = \"env:MOLLY_TEST_ABSENT\"", "f");
  EXPECT_FALSE(document.root().secret("key").has_value());
  EXPECT_THAT(document.finish().error().message, HasSubstr("MOLLY_TEST_ABSENT is not set"));
}

TEST(Secret, that_stands_in_the_file_is_refused_and_not_repeated) {
  for (const char* value :
       {"\"topsecret\"", "\"env:top-secret topsecret\"", "12345", "\"sk-topsecret\"", "[\"topsecret\"]"}) {
    auto document = Document::parse("key = " + std::string(value), "f");
    EXPECT_FALSE(document.root().secret("key").has_value());
    const auto verdict = document.finish();
    ASSERT_FALSE(verdict.has_value());
    EXPECT_THAT(verdict.error().message, Not(HasSubstr("topsecret")));
    EXPECT_THAT(verdict.error().message, HasSubstr("f:1:7: key"));
  }
}

}  // namespace
}  // namespace molly::config
