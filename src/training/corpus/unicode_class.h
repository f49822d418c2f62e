#pragma once

#include <cstdint>

namespace molly::training {

// The classes that pre-tokenizers tell apart: \p{L}, \p{N}, \s and all the rest.
enum class CharacterClass : std::uint8_t { other, letter, number, space };

// Of any number; what is no code point is `other`. Thread-safe.
CharacterClass class_of(char32_t code_point);

}  // namespace molly::training
