#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace molly::base {

// For large blocks of plain numbers that are filled soon after: memory comes zeroed from the kernel, in huge pages
// where it can, and is not zeroed again by the container.
template <class Number>
class ZeroedAllocator {
 public:
  using value_type = Number;

  ZeroedAllocator() = default;
  template <class Other>
  explicit ZeroedAllocator(const ZeroedAllocator<Other>&) {}

  Number* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(Number);
    void* memory = bytes < huge_page ? std::calloc(count, sizeof(Number)) : map(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<Number*>(memory);
  }

  void deallocate(Number* memory, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(Number);
    if (bytes < huge_page) {
      std::free(memory);
    } else {
      ::munmap(memory, bytes);
    }
  }

  template <class Other>
  void construct(Other*) {}  // it is zero already
  template <class Other, class... Arguments>
  void construct(Other* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) Other(std::forward<Arguments>(arguments)...);
  }

  bool operator==(const ZeroedAllocator&) const = default;

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;

  static void* map(std::size_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
  }
};

}  // namespace molly::base
