#pragma once

#include <string>
#include <string_view>

namespace molly::training {

// The words of an HTML page, laid out as plain text: blank lines around paragraphs, headings, lists and tables; "- "
// before list items; one line a row of a table, cells parted by " | "; preformatted text as it stands. Left out are
// scripts, styles, pictures, forms and what is there to find one's way about: menus, headers, footers, tables of
// contents. Bytes in, bytes out: any input gives a result, in time linear in its size.
std::string text_of_html(std::string_view html);

}  // namespace molly::training
