// usage: bench_models FOLDER ADAPTERS: the base of the published measurements in F16 and adapters of rank 16 for it.
#include <cstdlib>
#include <format>
#include <iostream>

#include "random_model.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_models FOLDER ADAPTERS\n";
    return 2;
  }
  using namespace molly::engine;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const RandomModel base = RandomModel::of_350m();
  write_random_model(folder / "f16.gguf", base);
  const int adapters = std::atoi(argv[2]);
  for (int number = 0; number < adapters; ++number) {
    write_random_adapter(folder / std::format("a{:02}.gguf", number), base,
                         {.rank = 16, .seed = static_cast<std::uint64_t>(number) + 100});
  }
}
