#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "engine/adapters/lora_file.h"
#include "engine/adapters/number_format.h"

namespace molly::engine {

// A factor as it stands in a file: rows of numbers, one after another.
struct StoredMatrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  NumberFormat format = NumberFormat::f32;
  std::span<const std::uint8_t> bytes;  // of the file; encoded_bytes(format, rows * columns) of them
};

enum class Factor : std::uint8_t { a, b };

// What a tensor's name in a file says.
struct FactorName {
  std::uint64_t layer = 0;
  Projection projection = Projection::attn_q;
  Factor factor = Factor::a;
};

// "3.attn_q": what stands in a tensor's name between a format's own front and back. `names` are the format's, in the
// order of Projection.
std::optional<FactorName> parse_place(std::string_view text, Factor factor,
                                      const std::array<std::string_view, projection_count>& names);

inline constexpr std::uint32_t max_rank = 512;

// Collects the factors of a file, whatever its format, and checks that they fit together and fit the base before any
// number is converted: a hostile file cannot make us allocate more than the base's own shapes allow.
class FactorPairs {
 public:
  explicit FactorPairs(const BaseShape& base) : base_(base) {}

  // invalid_request for a layer that the base lacks, and for a factor that is there already.
  Result<void> add(const FactorName& name, const StoredMatrix& matrix);

  using Scale = std::function<Result<float>(std::uint32_t layer, Projection projection, std::uint32_t rank)>;
  // Checks and converts everything.
  Result<std::vector<LoraTensor>> tensors(const Scale& scale) const;

 private:
  struct Pair {
    std::optional<StoredMatrix> a;  // [rank][n_in]
    std::optional<StoredMatrix> b;  // [n_out][rank]
  };
  using Place = std::pair<std::uint32_t, Projection>;

  Result<void> check(const Place& place, const Pair& pair) const;
  Result<LoraTensor> convert(const Place& place, const Pair& pair, const Scale& scale) const;

  const BaseShape& base_;
  std::map<Place, Pair> pairs_;
};

// "blk.3.attn_q"
std::string name_of(std::uint64_t layer, Projection projection);

// A name out of a file as it can stand in a message: short and printable.
std::string shown(std::string_view name);

inline std::unexpected<Error> refusal(std::string message) {
  return failure(ErrorCode::invalid_request, std::move(message));
}

}  // namespace molly::engine
