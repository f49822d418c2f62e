#include <gtest/gtest.h>

#include <fstream>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "probes/probe.h"

// Plays cases.txt, which shows for each checker what it takes and what it refuses.
namespace molly::probes {
namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found;
  for (const auto cell : std::views::split(line, std::string_view(" | "))) found.emplace_back(cell.begin(), cell.end());
  return found;
}

std::string with_line_breaks(std::string text) {
  for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) text.replace(at, 2, "\n");
  return text;
}

Task task_of(const std::vector<std::string>& cells) {
  return {cells[0], Language::english, cells[0] == "regex" ? "d3-U2" : "", with_line_breaks(cells[1]),
          with_line_breaks(cells[2])};
}

TEST(Cases, are_marked_as_the_table_says) {
  std::ifstream file(MOLLY_TEST_DATA "/cases.txt");
  std::set<std::string> taken;
  std::set<std::string> refused;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> row = cells(line);
    ASSERT_EQ(row.size(), 5U) << line;
    ASSERT_TRUE(row[4] == "right" || row[4] == "wrong") << line;
    EXPECT_EQ(is_right(task_of(row), with_line_breaks(row[3])), row[4] == "right") << line;
    (row[4] == "right" ? taken : refused).insert(row[0]);
  }
  for (const Family& family : families()) {
    EXPECT_TRUE(taken.contains(std::string(family.name))) << family.name;
    EXPECT_TRUE(refused.contains(std::string(family.name))) << family.name;
  }
}

}  // namespace
}  // namespace molly::probes
