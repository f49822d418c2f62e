#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/os/zeroed_allocator.h"
#include "engine/adapters/lora_file.h"
#include "engine/kernels/lora.h"
#include "engine/memory/page_pool.h"

namespace molly::engine {

// An adapter in the form in which it lies in the pool: rows of factors, none of which straddles a page. The warm form
// is this, page by page, in host memory: promotion is a copy of whole pages.
struct AdapterImage {
  struct Row {
    std::uint32_t page = 0;    // index into the adapter's own pages
    std::uint32_t offset = 0;  // bytes, a multiple of 64
  };
  struct Part {
    std::uint32_t layer = 0;
    Projection projection = Projection::attn_q;
    FactorType type = FactorType::f16;
    std::uint32_t rank = 0;
    float scale = 1;
    std::uint32_t first_row = 0;  // in rows: rank rows of A, then rank rows of B transposed
  };

  std::size_t page_bytes = 0;  // a multiple of 64
  std::uint32_t pages = 0;
  std::vector<Part> parts;
  std::vector<Row> rows;
  std::vector<std::byte, base::ZeroedAllocator<std::byte>> bytes;  // pages * page_bytes

  std::span<const std::byte> page(std::uint32_t index) const {
    return std::span(bytes).subspan(index * page_bytes, page_bytes);
  }
  std::uint32_t max_rank() const;
};

// Reads the adapter's numbers. A projection whose sizes are no multiples of 32 is stored as f16, whatever `type` says.
// invalid_request when a single row is longer than a page, a number is not finite or too large for half precision, or
// the file was cut since it was opened; io_failed.
Result<AdapterImage> make_image(const LoraFile& file, FactorType type, std::size_t page_bytes);

// Factors as kernels take them, once the image's pages are in the pool at these addresses: for each layer and
// projection, at [layer * projection_count + projection]. Pointers live in the tables of this object.
class ResidentAdapter {
 public:
  // One address for each page, 64-byte aligned. Every part's layer is below `layers`.
  ResidentAdapter(const AdapterImage& image, std::uint32_t layers, std::span<std::byte* const> page_addresses);

  ResidentAdapter(const ResidentAdapter&) = delete;
  ResidentAdapter& operator=(const ResidentAdapter&) = delete;

  // Rank 0 where the adapter leaves the projection alone.
  const LoraFactors& factors(std::uint32_t layer, Projection projection) const;
  std::uint32_t max_rank() const { return max_rank_; }
  // Of this object alone in this process: another may come to lie at the same address.
  std::uint64_t serial() const { return serial_; }

 private:
  std::uint64_t serial_;
  std::vector<const std::byte*> rows_;
  std::vector<LoraFactors> factors_;
  std::uint32_t max_rank_ = 0;
};

}  // namespace molly::engine
