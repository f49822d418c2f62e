#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "probes/probe.h"
#include "probes/random.h"

namespace molly::probes {

struct Word {
  std::string_view english;
  std::string_view spanish;

  constexpr std::string_view in(Language language) const { return language == Language::english ? english : spanish; }
};

// Ways to ask for the same thing; {0} to {9} stand for the facts.
struct Phrases {
  std::array<std::string_view, 4> english;
  std::array<std::string_view, 4> spanish;
};

std::string fill(std::string_view pattern, std::initializer_list<std::string_view> facts);
std::string say(Random& random, Language language, const Phrases& phrases,
                std::initializer_list<std::string_view> facts);

std::string join(const std::vector<std::string>& items, std::string_view separator);

// `units` of 10^-places, without trailing zeros: (450, 2) is "4.5". Not below zero.
std::string decimal(std::int64_t units, int places);

// `count` different entries of a list of `size`, by index, in random order.
std::vector<std::size_t> distinct(Random& random, std::size_t size, std::size_t count);

std::string lower(std::string_view ascii);
std::string upper(std::string_view ascii);

}  // namespace molly::probes
