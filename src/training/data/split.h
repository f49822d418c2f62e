#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "training/data/chat_row.h"
#include "training/data/data_set.h"

namespace molly::training {

// Says which part a row belongs to, and watches that no key and no example is in both.
class Split {
 public:
  Split(const std::vector<std::filesystem::path>& files, const DataOptions& options)
      : files_(files), share_(options.held_out_share) {}

  // `examples`: what the row became; of a preference the chosen and the rejected one. invalid_request names the other
  // line.
  Result<Part> place(const ChatRow& row, const std::vector<Example>& examples);
  // Rows' examples whose tokens were there before in the same part.
  std::size_t duplicates(Part part) const { return duplicates_[static_cast<std::size_t>(part)]; }

 private:
  struct Seen {
    Part part = Part::train;
    Origin origin;
  };

  Result<void> see_key(const Example& example, Part part);
  Result<void> see_tokens(std::string digest, Part part, Origin origin);
  std::string place_text(Origin origin) const;

  std::vector<std::filesystem::path> files_;
  double share_;
  std::map<std::string, Seen> keys_;
  std::map<std::string, Seen> examples_;  // by the digest of their tokens
  std::array<std::size_t, 2> duplicates_{};
};

}  // namespace molly::training
