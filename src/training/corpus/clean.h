#pragma once

#include <string>
#include <string_view>

namespace molly::training {

// Documentation as a small model is to read it: typographic quotes, dashes, arrows and signs in ASCII, other characters
// than ASCII and Latin letters dropped, tabs as four spaces, no space at line ends, no two blank lines in a row, no
// rule of more than five equal signs, none of this around the text. For the texts of the packages; others stay as they
// are.
std::string cleaned(std::string_view text);

}  // namespace molly::training
