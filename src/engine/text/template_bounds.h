#pragma once

#include <string_view>

namespace molly::engine {

// Whether a Jinja source is within what templates for chats need: 256 KiB, texts of 16 KiB, 2,000 bytes of code in one
// tag, brackets 50 and blocks 50 deep. minja's parser and nodes recurse for each operator, bracket and block, its
// regular expressions for each character of a text, and its time grows with the square of a tag's length.
bool is_within_template_bounds(std::string_view source);

}  // namespace molly::engine
