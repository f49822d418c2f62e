// usage: bench_loads MODEL ADAPTER...: milliseconds from an adapter's file to rows in host memory (cold: the file is
// not in the page cache; warm: it is), and from there into the pool. Medians, as one line of JSON.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <print>
#include <vector>

#include "base/os/file_descriptor.h"
#include "base/os/zeroed_allocator.h"
#include "engine/adapters/image.h"
#include "engine/adapters/lora_file.h"
#include "engine/model/model.h"

namespace molly::engine {
namespace {

constexpr std::size_t page_bytes = std::size_t{3} << 20;

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers[numbers.size() / 2];
}

void drop_from_page_cache(const char* path) {
  const base::FileDescriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

int run(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: bench_loads MODEL ADAPTER...\n";
    return 2;
  }
  const auto backend = Backend::open({.threads = 1}).value();
  const auto model = Model::load(arguments[1], *backend).value();
  std::vector<std::byte, base::ZeroedAllocator<std::byte>> pool(std::size_t{32} * page_bytes);
  std::ranges::fill(pool, std::byte{1});
  std::vector<double> cold;
  std::vector<double> warm;
  std::vector<double> copies;
  for (int round = 0; round < 4; ++round) {
    for (int i = 2; i < count; ++i) {
      const bool is_cold = round % 2 == 0;
      if (is_cold) drop_from_page_cache(arguments[i]);
      const auto start = std::chrono::steady_clock::now();
      const LoraFile file = read_lora_file(arguments[i], model->base_shape()).value();
      const AdapterImage image = make_image(file, FactorType::f16, page_bytes).value();
      (is_cold ? cold : warm).push_back(milliseconds_since(start));
      const auto copying = std::chrono::steady_clock::now();
      std::memcpy(pool.data(), image.bytes.data(), std::min(pool.size(), image.bytes.size()));
      copies.push_back(milliseconds_since(copying));
    }
  }
  std::println(R"({{"cold_ms":{:.2f},"warm_file_ms":{:.2f},"promotion_ms":{:.2f}}})", median(cold), median(warm),
               median(copies));
  return 0;
}

}  // namespace
}  // namespace molly::engine

int main(int count, char** arguments) { return molly::engine::run(count, arguments); }
