#include "training/corpus/html_text.h"

#include <algorithm>
#include <array>
#include <span>

#include "training/corpus/html_entity.h"

namespace molly::training {
namespace {

constexpr std::array<std::string_view, 14> silent_elements{"button", "footer", "form",     "head",    "iframe",
                                                           "math",   "nav",    "noscript", "object",  "script",
                                                           "select", "style",  "svg",      "template"};
// Classes of what Sphinx, DocBook and SQLite's own generator put around the text.
constexpr std::array<std::string_view, 22> silent_classes{
    "button",    "fancy-toc1", "fancy-toc2", "fancy-toc3",        "fancy-toc4", "fancy_toc",
    "footer",    "headerlink", "indexterm",  "inline-search",     "mainmenu",   "mobile-nav",
    "navfooter", "navheader",  "related",    "searchmenu",        "sh_link",    "sphinxsidebar",
    "submenu",   "tagline",    "toc",        "versionchanged-toc"};
// A blank line goes before and after these, a line break before and after those.
constexpr std::array<std::string_view, 20> paragraphs{
    "blockquote", "dl", "fieldset", "figure", "h1",      "h2",    "h3", "h4",      "h5",    "h6",
    "hr",         "ol", "p",        "pre",    "section", "table", "ul", "article", "aside", "main"};
constexpr std::array<std::string_view, 14> lines{"br", "caption", "center", "dd",    "details", "div",     "dt",
                                                 "li", "tbody",   "tfoot",  "thead", "tr",      "summary", "address"};
constexpr std::array<std::string_view, 7> empty_elements{"br", "hr", "img", "input", "link", "meta", "wbr"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

struct Tag {
  std::string name;  // empty: a comment, a declaration or an instruction
  std::string_view attributes;
  bool closes = false;
};

// Text that knows what stands before its end.
class Layout {
 public:
  void words(std::string_view text) {
    for (const char c : text) {
      if (is_space(c)) {
        space_ = true;
      } else {
        put(c);
      }
    }
  }

  void verbatim(std::string_view text) {
    if (text.empty()) return;
    const bool begins_line = breaks_ > 0 && text.front() == '\n';
    flush();
    text_ += text.substr(begins_line ? 1 : 0);
  }

  void line() { breaks_ = std::max(breaks_, 1); }
  void paragraph() { breaks_ = 2; }

  void item() {
    line();
    words("-");
    space_ = true;
  }

  void cell() {
    if (breaks_ == 0 && !text_.empty()) words(" | ");
  }

  std::string take() && { return std::move(text_); }

 private:
  void put(char c) {
    flush();
    text_ += c;
  }

  void flush() {
    if (breaks_ > 0 && !text_.empty()) {
      text_.append(static_cast<std::size_t>(breaks_), '\n');
    } else if (space_ && !text_.empty() && text_.back() != '\n') {
      text_ += ' ';
    }
    breaks_ = 0;
    space_ = false;
  }

  std::string text_;
  int breaks_ = 0;
  bool space_ = false;
};

class Page {
 public:
  explicit Page(std::string_view html) : rest_(html) {}

  std::string text() && {
    while (!rest_.empty()) {
      const std::size_t tag = std::min(find_tag(), rest_.size());
      say(rest_.substr(0, tag));
      rest_.remove_prefix(tag);
      if (!rest_.empty()) see(read_tag());
    }
    return std::move(layout_).take();
  }

 private:
  // A "<" that begins no tag is text.
  std::size_t find_tag() const {
    for (std::size_t at = rest_.find('<'); at != std::string_view::npos; at = rest_.find('<', at + 1)) {
      if (at + 1 == rest_.size()) return std::string_view::npos;
      const char next = rest_[at + 1];
      if (next == '/' || next == '!' || next == '?' || (lower(next) >= 'a' && lower(next) <= 'z')) return at;
    }
    return std::string_view::npos;
  }

  void say(std::string_view raw) {
    if (silent_depth_ > 0) return;
    const std::string text = resolve_entities(raw);
    if (preformatted_ > 0) {
      layout_.verbatim(text);
    } else {
      layout_.words(text);
    }
  }

  std::string_view take_until(std::string_view end) {
    const std::size_t at = rest_.find(end);
    const std::string_view taken = rest_.substr(0, at);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + end.size());
    return taken;
  }

  Tag read_tag() {
    if (rest_.starts_with("<!--")) {
      take_until("-->");
      return {};
    }
    std::string_view inside = take_until(">").substr(1);
    Tag tag;
    if (inside.starts_with('/')) {
      tag.closes = true;
      inside.remove_prefix(1);
    }
    std::size_t end = 0;
    while (end < inside.size() && !is_space(inside[end]) && inside[end] != '/') tag.name += lower(inside[end++]);
    tag.attributes = inside.substr(end);
    if (tag.name.starts_with('!') || tag.name.starts_with('?')) tag.name.clear();
    return tag;
  }

  void see(const Tag& tag) {
    if (tag.name.empty()) return;
    if (silent_depth_ > 0) {
      if (tag.name == silent_name_) silent_depth_ += tag.closes ? -1 : 1;
      return;
    }
    if (!tag.closes && is_silent(tag)) return fall_silent(tag);
    lay_out(tag);
  }

  static bool is_silent(const Tag& tag) {
    if (is_one_of(tag.name, empty_elements)) return false;
    return is_one_of(tag.name, silent_elements) || has_silent_class(tag.attributes);
  }

  static bool has_silent_class(std::string_view attributes) {
    const std::size_t at = attributes.find("class=");
    if (at == std::string_view::npos) return false;
    std::string_view value = attributes.substr(at + 6);
    const char quote = value.empty() ? ' ' : value.front();
    if (quote == '"' || quote == '\'') {
      value.remove_prefix(1);
      value = value.substr(0, value.find(quote));
    } else {
      value = value.substr(0, value.find_first_of(" \t\n/"));
    }
    while (!value.empty()) {
      const std::size_t end = std::min(value.find_first_of(" \t\n"), value.size());
      if (is_one_of(value.substr(0, end), silent_classes)) return true;
      value.remove_prefix(std::min(end + 1, value.size()));
    }
    return false;
  }

  void fall_silent(const Tag& tag) {
    if (tag.attributes.ends_with('/')) return;
    silent_name_ = tag.name;
    silent_depth_ = 1;
    // What scripts and styles hold is no markup.
    if (tag.name != "script" && tag.name != "style") return;
    const std::size_t end = rest_.find("</" + tag.name);
    rest_.remove_prefix(std::min(end, rest_.size()));
  }

  void lay_out(const Tag& tag) {
    if (is_one_of(tag.name, paragraphs)) layout_.paragraph();
    if (is_one_of(tag.name, lines)) layout_.line();
    if (tag.name == "pre") preformatted_ = std::max(0, preformatted_ + (tag.closes ? -1 : 1));
    if (tag.closes) return;
    if (tag.name == "li") layout_.item();
    if (tag.name == "td" || tag.name == "th") layout_.cell();
  }

  std::string_view rest_;
  Layout layout_;
  std::string silent_name_;
  int silent_depth_ = 0;
  int preformatted_ = 0;
};

}  // namespace

std::string text_of_html(std::string_view html) { return Page(html).text(); }

}  // namespace molly::training
