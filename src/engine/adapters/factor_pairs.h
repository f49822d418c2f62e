#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "engine/adapters/lora_file.h"

namespace molly::engine {

enum class Factor : std::uint8_t { a, b };

// What a tensor's name in a file says.
struct FactorName {
  std::uint64_t layer = 0;
  Projection projection = Projection::attn_q;
  Factor factor = Factor::a;
};

// How a file format names the factors: FRONT layer "." projection, then one of the backs.
struct FactorNames {
  std::string_view front;
  std::string_view back_a;
  std::string_view back_b;
  std::array<std::string_view, projection_count> projections;  // in the order of Projection

  // Nothing where the name is none of a factor.
  std::optional<FactorName> parse(std::string_view name) const;
};

inline constexpr std::uint32_t max_rank = 512;

// Collects the factors of a file, whatever its format, and checks that they fit together and fit the base before any
// number is read: a hostile file cannot make us allocate more than the base's own shapes allow.
class FactorPairs {
 public:
  explicit FactorPairs(const BaseShape& base) : base_(base) {}

  // invalid_request for a layer that the base lacks, and for a factor that is there already.
  Result<void> add(const FactorName& name, const StoredMatrix& matrix);

  using Scale = std::function<Result<float>(std::uint32_t layer, Projection projection, std::uint32_t rank)>;
  // Checks everything but the numbers.
  Result<std::vector<LoraTensor>> tensors(const Scale& scale) const;

 private:
  struct Pair {
    std::optional<StoredMatrix> a;  // [rank][n_in]
    std::optional<StoredMatrix> b;  // [n_out][rank]
  };
  using Place = std::pair<std::uint32_t, Projection>;

  Result<void> check(const Place& place, const Pair& pair) const;
  static Result<LoraTensor> joined(const Place& place, const Pair& pair, const Scale& scale);

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
