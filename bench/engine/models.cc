// usage: bench_models FOLDER ADAPTERS: the base of the published measurements in F16 and adapters of rank 16 for it.
//        bench_models FOLDER drafting: a model whose last layers add little, one of only its first layers, which
//        guesses well what it says, and one that has nothing to do with it; all Q4_0.
#include <cstdlib>
#include <format>
#include <iostream>

#include "random_model.h"

namespace {

void write_models_for_drafting(const std::filesystem::path& folder) {
  using namespace molly::engine;
  RandomModel model = RandomModel::of_350m();
  model.type = GGML_TYPE_Q4_0;
  model.fine_from = 3;
  model.fine = 0.1F;
  write_random_model(folder / "target.gguf", model);
  model.n_layer = model.fine_from;
  write_random_model(folder / "first-layers.gguf", model);
  model.seed = 2;
  write_random_model(folder / "other.gguf", model);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_models FOLDER ADAPTERS|drafting\n";
    return 2;
  }
  using namespace molly::engine;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  if (std::string_view(argv[2]) == "drafting") {
    write_models_for_drafting(folder);
    return 0;
  }
  const RandomModel base = RandomModel::of_350m();
  write_random_model(folder / "f16.gguf", base);
  const int adapters = std::atoi(argv[2]);
  for (int number = 0; number < adapters; ++number) {
    write_random_adapter(folder / std::format("a{:02}.gguf", number), base,
                         {.rank = 16, .seed = static_cast<std::uint64_t>(number) + 100});
  }
}
