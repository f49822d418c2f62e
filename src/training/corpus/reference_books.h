#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace molly::training {

// The synsets of one of WordNet's data files (wndb(5WN)), a line each, such as "car, auto (noun): a motor vehicle".
// Lines that are none, such as those of the notice at the head, are passed over.
std::vector<std::string> glosses_of(std::string_view wordnet_data);

// The entries of a dictd dictionary in the order of its text: `index` has a line for every headword with where its
// entry begins and how long it is (dictfmt(1)). Left out are the notices at the head, whose headwords begin with
// "00-database", and what lies outside the text.
std::vector<std::string> entries_of(std::string_view dictionary, std::string_view index);

// Whether a dictionary's entry tells of an atomic number of 104 or above.
bool describes_superheavy_element(std::string_view entry);

}  // namespace molly::training
