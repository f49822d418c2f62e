#include "training/corpus/clean.h"

#include <algorithm>
#include <optional>

#include "engine/text/utf8.h"

namespace molly::training {
namespace {

constexpr std::size_t longest_rule = 5;
constexpr std::string_view rule_signs = "-=_*.~#+";

std::optional<std::string_view> in_ascii(char32_t value) {
  switch (value) {
    case '\t': return "    ";
    case 0xa0:
    case 0x2002:
    case 0x2003:
    case 0x2009:
    case 0x202f: return " ";
    case 0x2018:
    case 0x2019:
    case 0x2032: return "'";
    case 0x201c:
    case 0x201d:
    case 0x2033:
    case 0xab:
    case 0xbb: return "\"";
    case 0x2010:
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2212: return "-";
    case 0x2014:
    case 0x2015: return "--";
    case 0x2022:
    case 0x25cf: return "-";
    case 0x2026: return "...";
    case 0x2190: return "<-";
    case 0x2192:
    case 0x2794:
    case 0x21a6: return "->";
    case 0x2194: return "<->";
    case 0x21d2: return "=>";
    case 0x2260: return "!=";
    case 0x2264: return "<=";
    case 0x2265: return ">=";
    case 0xd7: return "x";
    case 0xa9: return "(C)";
    case 0xae: return "(R)";
    case 0x2122: return "(TM)";
    default: return std::nullopt;
  }
}

// Those of Latin-1 and Latin Extended-A, and the marks that Spanish opens with.
bool is_latin(char32_t value) {
  if (value == 0xa1 || value == 0xbf || value == 0xaa || value == 0xba) return true;
  return value >= 0xc0 && value <= 0x17f && value != 0xd7 && value != 0xf7;
}

class Cleaner {
 public:
  void add(char32_t value) {
    if (const auto text = in_ascii(value)) {
      for (const char c : *text) add_ascii(c);
    } else if (value < 0x80) {
      add_ascii(static_cast<char>(value));
    } else if (is_latin(value)) {
      before_ink();
      engine::append_code_point(text_, value);
      run_ = 0;
    }
  }

  std::string take() && { return std::move(text_); }

 private:
  void add_ascii(char c) {
    if (c == '\n') {
      ++newlines_;
      spaces_ = 0;
    } else if (c == ' ') {
      ++spaces_;
    } else if (c > ' ' && c < 0x7f) {
      add_ink(c);
    }
  }

  void add_ink(char c) {
    const bool repeated = newlines_ == 0 && spaces_ == 0 && !text_.empty() && text_.back() == c;
    run_ = repeated ? run_ + 1 : 1;
    if (run_ > longest_rule && rule_signs.contains(c)) return;
    before_ink();
    text_ += c;
  }

  // White space is written when something follows it.
  void before_ink() {
    if (!text_.empty()) text_.append(std::min<std::size_t>(newlines_, 2), '\n');
    if (!text_.empty()) text_.append(spaces_, ' ');
    newlines_ = 0;
    spaces_ = 0;
  }

  std::string text_;
  std::size_t newlines_ = 0;
  std::size_t spaces_ = 0;
  std::size_t run_ = 0;
};

}  // namespace

std::string cleaned(std::string_view text) {
  Cleaner cleaner;
  while (!text.empty()) {
    const engine::CodePoint code = engine::first_code_point(text);
    if (code.length != 0) cleaner.add(code.value);
    text.remove_prefix(code.length != 0 ? code.length : 1);
  }
  return std::move(cleaner).take();
}

}  // namespace molly::training
