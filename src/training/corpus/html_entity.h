#pragma once

#include <string>
#include <string_view>

namespace molly::training {

// Text with its character references, such as &amp; and &#8212;, resolved. What is none stays as it is.
std::string resolve_entities(std::string_view text);

}  // namespace molly::training
