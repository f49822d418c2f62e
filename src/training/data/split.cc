#include "training/data/split.h"

#include <cmath>
#include <format>

#include "training/digest.h"

namespace molly::training {
namespace {

std::string_view bytes_of(const std::vector<std::int32_t>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(std::int32_t)};
}

std::string digest_of(const std::vector<Example>& examples, std::size_t first, std::size_t count) {
  Sha256 hash;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::uint64_t length = examples[i].tokens.size();
    hash.add({reinterpret_cast<const char*>(&length), sizeof length});
    hash.add(bytes_of(examples[i].tokens));
  }
  const auto digest = hash.digest();
  return {digest.begin(), digest.end()};
}

}  // namespace

bool is_held_out(std::string_view key, double share) {
  Sha256 hash;
  hash.add(key);
  const auto digest = hash.digest();
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < sizeof first; ++i) first = first << 8 | digest[i];
  return std::ldexp(static_cast<double>(first), -64) < share;
}

std::string Split::place_text(Origin origin) const {
  return std::format("{}:{}", files_[origin.file].string(), origin.line);
}

Result<void> Split::see_key(const Example& example, Part part) {
  const auto [found, is_new] = keys_.try_emplace(example.key, Seen{part, example.origin});
  if (is_new || found->second.part == part) return {};
  return failure(ErrorCode::invalid_request,
                 std::format("the key '{}' is on both sides of the split: {} says otherwise", example.key,
                             place_text(found->second.origin)),
                 "split");
}

Result<void> Split::see_tokens(std::string digest, Part part, Origin origin) {
  const auto [found, is_new] = examples_.try_emplace(std::move(digest), Seen{part, origin});
  if (is_new) return {};
  if (found->second.part == part) {
    ++duplicates_[static_cast<std::size_t>(part)];
    return {};
  }
  return failure(ErrorCode::invalid_request,
                 std::format("the same example is on the other side of the split too: {}; give both one key, or remove "
                             "one",
                             place_text(found->second.origin)),
                 "key");
}

Result<Part> Split::place(const ChatRow& row, const std::vector<Example>& examples) {
  const Example& first = examples.front();
  const Part by_key = is_held_out(first.key, share_) ? Part::held_out : Part::train;
  const Part part = row.split.value_or(by_key);
  if (auto seen = see_key(first, part); !seen) return std::unexpected(seen.error());
  const std::size_t each = row.is_preference() ? examples.size() : 1;
  for (std::size_t i = 0; i < examples.size(); i += each) {
    auto seen = see_tokens(digest_of(examples, i, each), part, first.origin);
    if (!seen) return std::unexpected(seen.error());
  }
  return part;
}

}  // namespace molly::training
