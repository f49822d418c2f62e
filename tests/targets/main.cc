#include <gtest/gtest.h>

#include <string_view>

#include "fake_server.h"

// Started as a model server would be ("PROGRAM --model FILE ..."), the test program plays one.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--model") return molly::targets::play_model_server(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
