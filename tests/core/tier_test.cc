#include "core/tier.h"

#include <gtest/gtest.h>

namespace molly {
namespace {

TEST(Tier, reads_back_its_own_name) {
  for (const Tier tier : all_tiers) EXPECT_EQ(parse_tier(to_string(tier)), tier);
}

TEST(Tier, refuses_anything_else) {
  for (const char* text : {"", "T", "T4", "T01", "local", "3T"}) EXPECT_FALSE(parse_tier(text)) << text;
}

}  // namespace
}  // namespace molly
