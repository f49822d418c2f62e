#pragma once

#include <algorithm>
#include <cstdint>

#include "labels/label.h"

// The part of a label that decides where data may go, in two words: what policy computes with, and what is
// checked exhaustively. Zones are bits that the owner of a table of names (policy::Engine) gave out.
namespace molly::labels {

struct PackedLabel {
  Confidentiality confidentiality = Confidentiality::public_;
  Integrity integrity = Integrity::trusted;
  std::uint64_t zones = ~std::uint64_t{0};

  bool operator==(const PackedLabel&) const = default;
};

constexpr PackedLabel join(PackedLabel a, PackedLabel b) {
  return {std::max(a.confidentiality, b.confidentiality), std::max(a.integrity, b.integrity), a.zones & b.zones};
}

constexpr bool flows_to(PackedLabel from, PackedLabel to) {
  return from.confidentiality <= to.confidentiality && from.integrity <= to.integrity && (to.zones & ~from.zones) == 0;
}

}  // namespace molly::labels
