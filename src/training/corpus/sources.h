#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace molly::training {

enum class TextForm : std::uint8_t { html, wordnet, dictionary };

// A package's documents, found by their place in it.
struct Source {
  std::string_view package;
  std::string_view folder;  // within the package; files below it count too
  TextForm form;
  std::string_view ending;                     // of the names of files that count
  std::span<const std::string_view> left_out;  // beginnings of paths below `folder`: see models/LICENSES.md
};

// In the order of their packages' names.
std::span<const Source> sources();

}  // namespace molly::training
