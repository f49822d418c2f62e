#include "engine/kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace molly::engine {
namespace {

TEST(Isa, the_best_one_may_run_here) { EXPECT_TRUE(is_supported(best_isa())); }

TEST(Isa, there_is_always_a_portable_one) { EXPECT_TRUE(is_supported(Isa::scalar)); }

TEST(Isa, an_avx512_processor_has_avx2) {
  if (is_supported(Isa::avx512)) {
    EXPECT_TRUE(is_supported(Isa::avx2));
  }
}

TEST(Isa, names_are_those_of_the_environment_variable) {
  EXPECT_EQ(to_string(Isa::scalar), "scalar");
  EXPECT_EQ(to_string(Isa::avx2), "avx2");
  EXPECT_EQ(to_string(Isa::avx512), "avx512");
  EXPECT_EQ(to_string(Isa::neon), "neon");
}

}  // namespace
}  // namespace molly::engine
