#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/schedule/draft_source.h"

namespace molly::engine {

// Looks the sequence's last n tokens up in the sequence itself (prompt lookup decoding, Saxena 2023), longest n first.
class NgramDrafter : public DraftSource {
 public:
  NgramDrafter(std::uint32_t shortest = 2, std::uint32_t longest = 4) : shortest_(shortest), longest_(longest) {}

  std::vector<std::vector<Token>> draft(std::span<const DraftWish> wishes) override;

 private:
  std::vector<Token> continue_as_before(std::span<const Token> tokens, std::uint32_t depth) const;

  std::uint32_t shortest_;
  std::uint32_t longest_;
};

}  // namespace molly::engine
