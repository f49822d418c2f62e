#include <gtest/gtest.h>

#include <string_view>

#include "stand_in.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--act-as") return molly::base::act_as(argc - 2, argv + 2);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
