#include "engine/adapters/factor_pairs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace molly::engine {
namespace {

std::unexpected<Error> mismatch(const std::string& name, std::string_view factor, std::uint64_t adapter,
                                std::string_view what, std::uint64_t base) {
  return refusal(name + ": the adapter's " + std::string(factor) + " has " + std::to_string(adapter) + " " +
                 std::string(what) + ", the base " + std::to_string(base));
}

}  // namespace

std::string name_of(std::uint64_t layer, Projection projection) {
  return "blk." + std::to_string(layer) + "." + std::string(to_string(projection));
}

std::string shown(std::string_view name) {
  constexpr std::size_t longest = 80;
  std::string text(name.substr(0, longest));
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return name.size() > longest ? text + "..." : text;
}

std::optional<FactorName> FactorNames::parse(std::string_view name) const {
  const bool is_b = name.ends_with(back_b);
  const std::string_view back = is_b ? back_b : back_a;
  if (name.size() < front.size() + back.size() || !name.starts_with(front) || !name.ends_with(back)) {
    return std::nullopt;
  }
  std::string_view place = name.substr(front.size(), name.size() - front.size() - back.size());
  FactorName parsed{.factor = is_b ? Factor::b : Factor::a};
  const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), parsed.layer);
  place.remove_prefix(static_cast<std::size_t>(end - place.data()));
  if (error != std::errc() || !place.starts_with('.')) return std::nullopt;
  const auto named = std::ranges::find(projections, place.substr(1));
  if (named == projections.end()) return std::nullopt;
  parsed.projection = static_cast<Projection>(named - projections.begin());
  return parsed;
}

Result<void> FactorPairs::add(const FactorName& name, const StoredMatrix& matrix) {
  const std::string shown_name = name_of(name.layer, name.projection);
  if (name.layer >= base_.layers) {
    return refusal(shown_name + ": the base has only " + std::to_string(base_.layers) + " layers");
  }
  auto& pair = pairs_[{static_cast<std::uint32_t>(name.layer), name.projection}];
  auto& place = name.factor == Factor::a ? pair.a : pair.b;
  if (place) return refusal(shown_name + ": the adapter has its " + (name.factor == Factor::a ? "A" : "B") + " twice");
  place = matrix;
  return {};
}

Result<void> FactorPairs::check(const Place& place, const Pair& pair) const {
  const std::string name = name_of(place.first, place.second);
  if (!pair.b) return refusal(name + ": the adapter has an A but no B");
  if (!pair.a) return refusal(name + ": the adapter has a B but no A");
  const auto shape = base_.projections[static_cast<std::size_t>(place.second)];
  const std::uint64_t rank = pair.a->rows;
  if (rank == 0 || rank > max_rank) {
    return refusal(name + ": the adapter's rank is " + std::to_string(rank) + "; it must be 1 to " +
                   std::to_string(max_rank));
  }
  if (pair.b->columns != rank) {
    return refusal(name + ": the adapter's A has rank " + std::to_string(rank) + ", its B " +
                   std::to_string(pair.b->columns));
  }
  if (pair.a->columns != shape.n_in) return mismatch(name, "A", pair.a->columns, "columns", shape.n_in);
  if (pair.b->rows != shape.n_out) return mismatch(name, "B", pair.b->rows, "rows", shape.n_out);
  return {};
}

Result<LoraTensor> FactorPairs::joined(const Place& place, const Pair& pair, const Scale& scale) {
  const auto factor = scale(place.first, place.second, static_cast<std::uint32_t>(pair.a->rows));
  if (!factor) return std::unexpected(factor.error());
  if (!std::isfinite(*factor)) {
    return refusal(name_of(place.first, place.second) + ": the adapter's scale is infinite or not a number");
  }
  return LoraTensor{.layer = place.first, .projection = place.second, .scale = *factor, .a = *pair.a, .b = *pair.b};
}

Result<std::vector<LoraTensor>> FactorPairs::tensors(const Scale& scale) const {
  if (pairs_.empty()) return refusal("the adapter changes nothing: it holds no factors");
  for (const auto& [place, pair] : pairs_) {
    if (auto fits = check(place, pair); !fits) return std::unexpected(std::move(fits.error()));
  }
  std::vector<LoraTensor> tensors;
  for (const auto& [place, pair] : pairs_) {
    auto tensor = joined(place, pair, scale);
    if (!tensor) return std::unexpected(std::move(tensor.error()));
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

}  // namespace molly::engine
