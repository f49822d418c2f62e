#include "engine/adapters/image.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "engine/adapters/number_format.h"
#include "engine/adapters/row_packing.h"

namespace molly::engine {
namespace {

using testing::HasSubstr;

LoraTensor tensor(std::uint32_t layer, Projection projection, std::uint32_t rank, std::uint32_t n_in,
                  std::uint32_t n_out) {
  std::mt19937 random(layer * 7 + static_cast<unsigned>(projection));
  std::uniform_real_distribution<float> uniform(-1, 1);
  LoraTensor made{.layer = layer, .projection = projection, .rank = rank, .scale = 0.5F, .a = {}, .b = {}};
  made.a.resize(std::size_t{rank} * n_in);
  made.b.resize(std::size_t{rank} * n_out);
  for (float& number : made.a) number = uniform(random);
  for (float& number : made.b) number = uniform(random);
  return made;
}

// A pool's pages in place of the executor's.
struct Pages {
  explicit Pages(const AdapterImage& image) : storage((image.pages + 1) * image.page_bytes) {
    auto* start = storage.data();
    start += (64 - reinterpret_cast<std::uintptr_t>(start) % 64) % 64;
    for (std::uint32_t i = 0; i < image.pages; ++i) {
      addresses.insert(addresses.begin(), start + i * image.page_bytes);  // in no order of use
    }
    for (std::uint32_t i = 0; i < image.pages; ++i) std::ranges::copy(image.page(i), addresses[i]);
  }
  std::vector<std::byte> storage;
  std::vector<std::byte*> addresses;
};

std::vector<float> row(FactorType type, const std::byte* at, std::size_t count) {
  const auto format = type == FactorType::f16 ? NumberFormat::f16 : NumberFormat::q8_0;
  std::vector<float> numbers(count);
  decode(format, {reinterpret_cast<const std::uint8_t*>(at), encoded_bytes(format, count)}, numbers);
  return numbers;
}

void expect_same(const LoraFactors& factors, const LoraTensor& tensor, float tolerance) {
  ASSERT_EQ(factors.rank(), tensor.rank);
  ASSERT_EQ(factors.b.size(), tensor.rank);
  EXPECT_EQ(factors.scale, tensor.scale);
  const std::size_t n_in = tensor.a.size() / tensor.rank;
  const std::size_t n_out = tensor.b.size() / tensor.rank;
  for (std::size_t r = 0; r < tensor.rank; ++r) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(factors.a[r]) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(factors.b[r]) % 64, 0U);
    const auto a = row(factors.type, factors.a[r], n_in);
    const auto b = row(factors.type, factors.b[r], n_out);
    for (std::size_t i = 0; i < n_in; ++i) ASSERT_NEAR(a[i], tensor.a[r * n_in + i], tolerance);
    for (std::size_t i = 0; i < n_out; ++i) ASSERT_NEAR(b[i], tensor.b[i * tensor.rank + r], tolerance);
  }
}

TEST(AdapterImage, a_resident_adapter_has_the_factors_of_the_file) {
  const LoraFile file{
      .name = "",
      .base = "",
      .tensors = {tensor(0, Projection::attn_q, 4, 64, 96), tensor(2, Projection::ffn_down, 8, 160, 64)}};
  for (const auto type : {FactorType::f16, FactorType::q8_0}) {
    const auto image = make_image(file, type, 1024);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_GT(image->pages, 1U);
    const Pages pages(*image);
    const ResidentAdapter resident(*image, 3, pages.addresses);
    const float tolerance = type == FactorType::f16 ? 0x1p-11F : 0.5F / 127 + 0x1p-11F;
    expect_same(resident.factors(0, Projection::attn_q), file.tensors[0], tolerance);
    expect_same(resident.factors(2, Projection::ffn_down), file.tensors[1], tolerance);
    EXPECT_EQ(resident.factors(0, Projection::attn_q).type, type);
    EXPECT_EQ(resident.factors(1, Projection::attn_q).rank(), 0U);
    EXPECT_EQ(resident.max_rank(), 8U);
  }
}

TEST(AdapterImage, sizes_that_are_no_whole_blocks_stay_in_half_precision) {
  const LoraFile file{.name = "",
                      .base = "",
                      .tensors = {tensor(0, Projection::attn_q, 2, 32, 32), tensor(0, Projection::attn_k, 2, 32, 40)}};
  const auto image = make_image(file, FactorType::q8_0, 1024);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->parts[0].type, FactorType::q8_0);
  EXPECT_EQ(image->parts[1].type, FactorType::f16);
  const Pages pages(*image);
  const ResidentAdapter resident(*image, 1, pages.addresses);
  expect_same(resident.factors(0, Projection::attn_k), file.tensors[1], 0x1p-11F);
}

TEST(AdapterImage, no_row_straddles_pages_or_overlaps_another) {
  LoraFile file;
  for (std::uint32_t layer = 0; layer < 6; ++layer) {
    file.tensors.push_back(tensor(layer, Projection::attn_q, 5, 100, 200));
    file.tensors.push_back(tensor(layer, Projection::ffn_up, 3, 100, 500));
  }
  const auto image = make_image(file, FactorType::f16, 2048);
  ASSERT_TRUE(image);
  std::vector<bool> taken(image->bytes.size());
  for (const auto& part : image->parts) {
    for (std::uint32_t i = 0; i < 2 * part.rank; ++i) {
      const auto& [page, offset] = image->rows[part.first_row + i];
      const auto& source = file.tensors[static_cast<std::size_t>(&part - image->parts.data())];
      const std::size_t bytes = (i < part.rank ? source.a.size() : source.b.size()) / part.rank * 2;
      ASSERT_LT(page, image->pages);
      ASSERT_EQ(offset % 64, 0U);
      ASSERT_LE(offset + bytes, image->page_bytes);
      for (std::size_t at = page * image->page_bytes + offset;
           bytes > 0 && at < page * image->page_bytes + offset + bytes; ++at) {
        ASSERT_FALSE(taken[at]);
        taken[at] = true;
      }
    }
  }
}

TEST(AdapterImage, wastes_little) {
  LoraFile file;
  for (std::uint32_t layer = 0; layer < 24; ++layer) {
    file.tensors.push_back(tensor(layer, Projection::attn_q, 16, 1024, 1024));
    file.tensors.push_back(tensor(layer, Projection::attn_k, 16, 1024, 512));
    file.tensors.push_back(tensor(layer, Projection::ffn_down, 16, 2816, 1024));
  }
  const auto image = make_image(file, FactorType::f16, 1 << 20);
  ASSERT_TRUE(image);
  std::size_t bytes = 0;
  for (const auto& tensor : file.tensors) bytes += 2 * (tensor.a.size() + tensor.b.size());
  EXPECT_LE(image->pages, bytes / image->page_bytes + 1);
}

TEST(AdapterImage, refuses_a_row_that_is_longer_than_a_page) {
  const LoraFile file{.name = "", .base = "", .tensors = {tensor(0, Projection::attn_q, 1, 64, 64)}};
  EXPECT_TRUE(make_image(file, FactorType::f16, 128));
  const auto image = make_image(file, FactorType::f16, 64);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::invalid_request);
  EXPECT_THAT(image.error().message, HasSubstr("takes 128 bytes, a page has only 64"));
}

TEST(AdapterImage, refuses_numbers_beyond_half_precision) {
  LoraFile file{.name = "", .base = "", .tensors = {tensor(3, Projection::attn_v, 1, 64, 64)}};
  file.tensors[0].b[5] = 70'000;
  const auto image = make_image(file, FactorType::f16, 1024);
  ASSERT_FALSE(image);
  EXPECT_THAT(image.error().message, HasSubstr("blk.3.attn_v"));
  EXPECT_TRUE(make_image(file, FactorType::q8_0, 1024)) << "the scale of a block is small enough";
}

TEST(RowPacking, fills_the_gap_that_fits_best) {
  RowPacking packing(1024);
  packing.place(700);  // leaves 320
  packing.place(900);  // leaves 64
  const auto small = packing.place(50);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->page, 1U);
  EXPECT_EQ(small->offset, 960U);
  EXPECT_EQ(packing.place(65)->page, 0U);
  EXPECT_EQ(packing.pages(), 2U);
  EXPECT_FALSE(packing.place(1025));
}

}  // namespace
}  // namespace molly::engine
