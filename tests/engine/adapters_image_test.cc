#include "engine/adapters/image.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "adapters_file_writer.h"
#include "engine/adapters/number_format.h"
#include "engine/adapters/row_packing.h"

namespace molly::engine {
namespace {

using testing::HasSubstr;

// An adapter of made-up numbers in a file of any format.
class Adapter {
 public:
  explicit Adapter(NumberFormat format = NumberFormat::f32) : format_(format) {}

  Adapter& add(std::uint32_t layer, Projection projection, std::uint32_t rank, std::uint32_t n_in,
               std::uint32_t n_out) {
    LoraTensor tensor{.layer = layer, .projection = projection, .scale = 0.5F};
    tensor.a = matrix(rank, n_in);
    tensor.b = matrix(n_out, rank);
    tensors_.push_back(tensor);
    return *this;
  }

  LoraFile file() const { return {.name = "", .base = "", .tensors = tensors_, .file = bytes_in_memory(bytes_)}; }

  void set_f32(std::uint64_t offset, float number) { std::memcpy(&bytes_[offset], &number, sizeof number); }
  void cut() { bytes_.pop_back(); }

 private:
  StoredMatrix matrix(std::uint32_t rows, std::uint32_t columns) {
    const StoredMatrix matrix{.rows = rows, .columns = columns, .format = format_, .offset = bytes_.size()};
    std::vector<float> numbers(std::size_t{rows} * columns);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& number : numbers) number = uniform(random_);
    std::vector<std::byte> encoded(matrix.bytes());
    switch (format_) {
      case NumberFormat::f32: std::memcpy(encoded.data(), numbers.data(), encoded.size()); break;
      case NumberFormat::f16: encode_f16(numbers, encoded); break;
      case NumberFormat::q8_0: encode_q8_0(numbers, encoded); break;
      case NumberFormat::bf16:
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          std::memcpy(&encoded[2 * i], reinterpret_cast<const std::byte*>(&numbers[i]) + 2, 2);
        }
    }
    for (const std::byte byte : encoded) bytes_.push_back(static_cast<std::uint8_t>(byte));
    return matrix;
  }

  NumberFormat format_;
  std::vector<LoraTensor> tensors_;
  std::vector<std::uint8_t> bytes_;
  std::mt19937 random_{7};
};

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

void expect_same(const LoraFactors& factors, const LoraFile& file, std::size_t number, float tolerance) {
  const LoraTensor& tensor = file.tensors[number];
  ASSERT_EQ(factors.rank(), tensor.rank());
  ASSERT_EQ(factors.b.size(), tensor.rank());
  EXPECT_EQ(factors.scale, tensor.scale);
  const auto wanted_a = numbers_of(file, tensor.a);
  const auto wanted_b = numbers_of(file, tensor.b);
  for (std::size_t r = 0; r < tensor.rank(); ++r) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(factors.a[r]) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(factors.b[r]) % 64, 0U);
    const auto a = row(factors.type, factors.a[r], tensor.n_in());
    const auto b = row(factors.type, factors.b[r], tensor.n_out());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], wanted_a[r * a.size() + i], tolerance);
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(b[i], wanted_b[i * tensor.rank() + r], tolerance);
  }
}

class AdapterImageOf : public testing::TestWithParam<std::pair<NumberFormat, FactorType>> {};

TEST_P(AdapterImageOf, a_resident_adapter_has_the_factors_of_the_file) {
  const auto [format, type] = GetParam();
  const LoraFile file =
      Adapter(format).add(0, Projection::attn_q, 32, 64, 96).add(2, Projection::ffn_down, 64, 160, 64).file();
  const auto image = make_image(file, type, 1024);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_GT(image->pages, 1U);
  const Pages pages(*image);
  const ResidentAdapter resident(*image, 3, pages.addresses);
  const float rounding = format == NumberFormat::f16 ? 0 : 0x1p-11F;
  const float tolerance = type == FactorType::f16 ? rounding : 0.5F / 127 + 0x1p-11F;
  expect_same(resident.factors(0, Projection::attn_q), file, 0, tolerance);
  expect_same(resident.factors(2, Projection::ffn_down), file, 1, tolerance);
  EXPECT_EQ(resident.factors(0, Projection::attn_q).type, type);
  EXPECT_EQ(resident.factors(1, Projection::attn_q).rank(), 0U);
  EXPECT_EQ(resident.max_rank(), 64U);
}

INSTANTIATE_TEST_SUITE_P(
    EveryFormat, AdapterImageOf,
    testing::Values(std::pair(NumberFormat::f32, FactorType::f16), std::pair(NumberFormat::f16, FactorType::f16),
                    std::pair(NumberFormat::bf16, FactorType::f16), std::pair(NumberFormat::q8_0, FactorType::f16),
                    std::pair(NumberFormat::f32, FactorType::q8_0), std::pair(NumberFormat::f16, FactorType::q8_0),
                    std::pair(NumberFormat::bf16, FactorType::q8_0), std::pair(NumberFormat::q8_0, FactorType::q8_0)));

TEST(AdapterImage, sizes_that_are_no_whole_blocks_stay_in_half_precision) {
  const LoraFile file = Adapter().add(0, Projection::attn_q, 2, 32, 32).add(0, Projection::attn_k, 2, 32, 40).file();
  const auto image = make_image(file, FactorType::q8_0, 1024);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->parts[0].type, FactorType::q8_0);
  EXPECT_EQ(image->parts[1].type, FactorType::f16);
  const Pages pages(*image);
  const ResidentAdapter resident(*image, 1, pages.addresses);
  expect_same(resident.factors(0, Projection::attn_k), file, 1, 0x1p-11F);
}

TEST(AdapterImage, no_row_straddles_pages_or_overlaps_another) {
  Adapter adapter;
  for (std::uint32_t layer = 0; layer < 6; ++layer) {
    adapter.add(layer, Projection::attn_q, 5, 100, 200).add(layer, Projection::ffn_up, 3, 100, 500);
  }
  const LoraFile file = adapter.file();
  const auto image = make_image(file, FactorType::f16, 2048);
  ASSERT_TRUE(image);
  std::vector<bool> taken(image->bytes.size());
  for (std::size_t number = 0; number < image->parts.size(); ++number) {
    const AdapterImage::Part& part = image->parts[number];
    const LoraTensor& source = file.tensors[number];
    for (std::uint32_t i = 0; i < 2 * part.rank; ++i) {
      const auto& [page, offset] = image->rows[part.first_row + i];
      const std::size_t bytes = (i < part.rank ? source.n_in() : source.n_out()) * std::size_t{2};
      ASSERT_LT(page, image->pages);
      ASSERT_EQ(offset % 64, 0U);
      ASSERT_LE(offset + bytes, image->page_bytes);
      const std::size_t first = page * image->page_bytes + offset;
      for (std::size_t at = first; at < first + bytes; ++at) {
        ASSERT_FALSE(taken[at]);
        taken[at] = true;
      }
    }
  }
}

TEST(AdapterImage, wastes_little) {
  Adapter adapter(NumberFormat::f16);
  for (std::uint32_t layer = 0; layer < 24; ++layer) {
    adapter.add(layer, Projection::attn_q, 16, 1024, 1024).add(layer, Projection::attn_k, 16, 1024, 512);
    adapter.add(layer, Projection::ffn_down, 16, 2816, 1024);
  }
  const LoraFile file = adapter.file();
  const auto image = make_image(file, FactorType::f16, 1 << 20);
  ASSERT_TRUE(image);
  EXPECT_LE(image->pages, file.file->size() / image->page_bytes + 1);
}

TEST(AdapterImage, refuses_a_row_that_is_longer_than_a_page) {
  const LoraFile file = Adapter().add(0, Projection::attn_q, 1, 64, 64).file();
  EXPECT_TRUE(make_image(file, FactorType::f16, 128));
  const auto image = make_image(file, FactorType::f16, 64);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::invalid_request);
  EXPECT_THAT(image.error().message, HasSubstr("takes 128 bytes, a page has only 64"));
}

TEST(AdapterImage, refuses_numbers_beyond_half_precision) {
  Adapter adapter;
  adapter.add(3, Projection::attn_v, 1, 64, 64);
  adapter.set_f32(64 * sizeof(float) + 20, 70'000);
  const auto image = make_image(adapter.file(), FactorType::f16, 1024);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().message, "blk.3.attn_v: the adapter holds numbers too large for half precision");
  EXPECT_TRUE(make_image(adapter.file(), FactorType::q8_0, 1024)) << "the scale of a block is small enough";
}

TEST(AdapterImage, says_that_a_file_was_cut_after_its_header_was_read) {
  Adapter adapter;
  adapter.add(0, Projection::attn_q, 1, 64, 64).cut();
  const auto image = make_image(adapter.file(), FactorType::f16, 1024);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::invalid_request);
  EXPECT_THAT(image.error().message, HasSubstr("cut off"));
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
