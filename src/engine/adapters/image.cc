#include "engine/adapters/image.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <functional>
#include <numeric>
#include <string>

#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/factor_reader.h"
#include "engine/adapters/number_format.h"
#include "engine/adapters/row_packing.h"

namespace molly::engine {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

FactorType type_for(const LoraTensor& tensor, FactorType wanted) {
  const bool whole_blocks = tensor.n_in() % q8_0_block == 0 && tensor.n_out() % q8_0_block == 0;
  return whole_blocks ? wanted : FactorType::f16;
}

// Largest first; rows of one size in their order, so that a part's rows mostly lie one after another.
Result<std::uint32_t> place_rows(AdapterImage& image, const std::vector<std::size_t>& row_sizes) {
  std::vector<std::size_t> order(row_sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return row_sizes[i]; });
  RowPacking packing(image.page_bytes);
  image.rows.resize(row_sizes.size());
  for (const auto i : order) {
    const auto place = packing.place(row_sizes[i]);
    if (!place) {
      return refusal("a row of the adapter takes " + std::to_string(row_sizes[i]) + " bytes, a page has only " +
                     std::to_string(image.page_bytes));
    }
    image.rows[i] = {.page = place->page, .offset = place->offset};
  }
  return packing.pages();
}

Result<void> lay_out(AdapterImage& image, const LoraFile& file, FactorType type) {
  std::vector<std::size_t> row_sizes;
  for (const auto& tensor : file.tensors) {
    const FactorType own_type = type_for(tensor, type);
    image.parts.push_back({.layer = tensor.layer,
                           .projection = tensor.projection,
                           .type = own_type,
                           .rank = tensor.rank(),
                           .scale = tensor.scale,
                           .first_row = static_cast<std::uint32_t>(row_sizes.size())});
    row_sizes.insert(row_sizes.end(), tensor.rank(), row_bytes(own_type, tensor.n_in()));
    row_sizes.insert(row_sizes.end(), tensor.rank(), row_bytes(own_type, tensor.n_out()));
  }
  const auto pages = place_rows(image, row_sizes);
  if (!pages) return std::unexpected(pages.error());
  image.pages = *pages;
  image.bytes.resize(image.pages * image.page_bytes);
  return {};
}

Result<void> fill(AdapterImage& image, const LoraFile& file) {
  FactorReader factors(*file.file);
  std::vector<std::byte*> rows;
  for (std::size_t i = 0; i < image.parts.size(); ++i) {
    const AdapterImage::Part& part = image.parts[i];
    rows.clear();
    for (const auto& [page, offset] : std::span(image.rows).subspan(part.first_row, 2 * std::size_t{part.rank})) {
      rows.push_back(&image.bytes[page * image.page_bytes + offset]);
    }
    const std::span<std::byte* const> all(rows);
    if (auto a = factors.write_a(file.tensors[i], part.type, all.first(part.rank)); !a) return a;
    if (auto b = factors.write_b(file.tensors[i], part.type, all.subspan(part.rank)); !b) return b;
  }
  return {};
}

}  // namespace

Result<AdapterImage> make_image(const LoraFile& file, FactorType type, std::size_t page_bytes) {
  assert(page_bytes % RowPacking::alignment == 0);
  AdapterImage image{.page_bytes = page_bytes};
  if (auto placed = lay_out(image, file, type); !placed) return std::unexpected(std::move(placed.error()));
  if (auto filled = fill(image, file); !filled) return std::unexpected(std::move(filled.error()));
  return image;
}

std::uint32_t AdapterImage::max_rank() const {
  std::uint32_t largest = 0;
  for (const auto& part : parts) largest = std::max(largest, part.rank);
  return largest;
}

ResidentAdapter::ResidentAdapter(const AdapterImage& image, std::uint32_t layers,
                                 std::span<std::byte* const> page_addresses)
    : serial_(next_serial()), factors_(layers * projection_count), max_rank_(image.max_rank()) {
  assert(page_addresses.size() == image.pages);
  rows_.reserve(image.rows.size());
  for (const auto& row : image.rows) {
    assert(row.page < page_addresses.size());
    rows_.push_back(page_addresses[row.page] + row.offset);
  }
  for (const auto& part : image.parts) {
    assert(part.layer < layers);
    const auto rows = std::span<const std::byte* const>(rows_).subspan(part.first_row, 2 * std::size_t{part.rank});
    factors_[part.layer * projection_count + static_cast<std::size_t>(part.projection)] = {
        .a = rows.first(part.rank), .b = rows.subspan(part.rank), .type = part.type, .scale = part.scale};
  }
}

const LoraFactors& ResidentAdapter::factors(std::uint32_t layer, Projection projection) const {
  return factors_[layer * projection_count + static_cast<std::size_t>(projection)];
}

}  // namespace molly::engine
