#include "engine/adapters/image.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <string>

#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/number_format.h"
#include "engine/adapters/row_packing.h"

namespace molly::engine {
namespace {

constexpr float largest_half = 65504;

std::uint32_t n_in(const LoraTensor& tensor) { return static_cast<std::uint32_t>(tensor.a.size() / tensor.rank); }
std::uint32_t n_out(const LoraTensor& tensor) { return static_cast<std::uint32_t>(tensor.b.size() / tensor.rank); }

NumberFormat format_of(FactorType type) { return type == FactorType::q8_0 ? NumberFormat::q8_0 : NumberFormat::f16; }

FactorType type_for(const LoraTensor& tensor, FactorType wanted) {
  const bool whole_blocks = n_in(tensor) % q8_0_block == 0 && n_out(tensor) % q8_0_block == 0;
  return whole_blocks ? wanted : FactorType::f16;
}

// One row of the image and the numbers that go there: `stride` apart in the source.
struct SourceRow {
  const float* numbers = nullptr;
  std::size_t stride = 1;
  std::uint32_t count = 0;
  FactorType type = FactorType::f16;
  std::size_t bytes() const { return encoded_bytes(format_of(type), count); }
};

void append_rows(std::vector<SourceRow>& rows, const LoraTensor& tensor, FactorType type) {
  const auto columns = n_in(tensor);
  for (std::uint32_t r = 0; r < tensor.rank; ++r) {
    rows.push_back({.numbers = tensor.a.data() + std::size_t{r} * columns, .count = columns, .type = type});
  }
  for (std::uint32_t r = 0; r < tensor.rank; ++r) {
    rows.push_back({.numbers = tensor.b.data() + r, .stride = tensor.rank, .count = n_out(tensor), .type = type});
  }
}

// Largest first; rows of one size in their order, so that a part's rows mostly lie one after another.
Result<std::uint32_t> place_rows(AdapterImage& image, const std::vector<SourceRow>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return rows[i].bytes(); });
  RowPacking packing(image.page_bytes);
  image.rows.resize(rows.size());
  for (const auto i : order) {
    const auto place = packing.place(rows[i].bytes());
    if (!place) {
      return refusal("a row of the adapter takes " + std::to_string(rows[i].bytes()) + " bytes, a page has only " +
                     std::to_string(image.page_bytes));
    }
    image.rows[i] = {.page = place->page, .offset = place->offset};
  }
  return packing.pages();
}

void write_row(const SourceRow& row, std::vector<float>& scratch, std::span<std::byte> to) {
  scratch.resize(row.count);
  for (std::size_t i = 0; i < row.count; ++i) scratch[i] = row.numbers[i * row.stride];
  if (row.type == FactorType::q8_0) {
    encode_q8_0(scratch, to);
  } else {
    encode_f16(scratch, to);
  }
}

// Of a whole tensor, in half precision or as the scale of a block of bytes.
Result<void> check_magnitudes(const LoraTensor& tensor, FactorType type) {
  const float most = type == FactorType::q8_0 ? largest_half * 127 : largest_half;
  if (std::max(largest_magnitude(tensor.a), largest_magnitude(tensor.b)) <= most) return {};
  return refusal(name_of(tensor.layer, tensor.projection) + ": the adapter holds numbers too large for half precision");
}

}  // namespace

Result<AdapterImage> make_image(const LoraFile& file, FactorType type, std::size_t page_bytes) {
  assert(page_bytes % RowPacking::alignment == 0);
  AdapterImage image{.page_bytes = page_bytes};
  std::vector<SourceRow> rows;
  for (const auto& tensor : file.tensors) {
    const FactorType own_type = type_for(tensor, type);
    if (auto fits = check_magnitudes(tensor, own_type); !fits) return std::unexpected(std::move(fits.error()));
    image.parts.push_back({.layer = tensor.layer,
                           .projection = tensor.projection,
                           .type = own_type,
                           .rank = tensor.rank,
                           .scale = tensor.scale,
                           .first_row = static_cast<std::uint32_t>(rows.size())});
    append_rows(rows, tensor, own_type);
  }
  const auto pages = place_rows(image, rows);
  if (!pages) return std::unexpected(pages.error());
  image.pages = *pages;
  image.bytes.resize(image.pages * page_bytes);
  std::vector<float> scratch;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [page, offset] = image.rows[i];
    write_row(rows[i], scratch, std::span(image.bytes).subspan(page * page_bytes + offset, rows[i].bytes()));
  }
  return image;
}

std::uint32_t AdapterImage::max_rank() const {
  std::uint32_t largest = 0;
  for (const auto& part : parts) largest = std::max(largest, part.rank);
  return largest;
}

ResidentAdapter::ResidentAdapter(const AdapterImage& image, std::uint32_t layers,
                                 std::span<std::byte* const> page_addresses)
    : factors_(layers * projection_count), max_rank_(image.max_rank()) {
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
