#include "training/corpus/pre_tokenizer.h"

#include "engine/text/utf8.h"
#include "training/corpus/unicode_class.h"

namespace molly::training {
namespace {

constexpr char32_t malformed = 0xfffd;

bool is_newline(char32_t value) { return value == '\r' || value == '\n'; }

bool is_letter(char32_t value) { return class_of(value) == CharacterClass::letter; }
bool is_number(char32_t value) { return class_of(value) == CharacterClass::number; }
bool is_space(char32_t value) { return class_of(value) == CharacterClass::space; }
bool is_symbol(char32_t value) { return class_of(value) == CharacterClass::other; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

PreTokenizer::PreTokenizer(std::string_view text) : text_(text) {}

std::string_view PreTokenizer::next() {
  if (at_ == text_.size()) return {};
  const std::size_t end = end_of_word();
  const std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

// At the end of the text a character without length.
PreTokenizer::Character PreTokenizer::at(std::size_t offset) const {
  if (offset == text_.size()) return {};
  const auto first = static_cast<unsigned char>(text_[offset]);
  if (first < 0x80) return {first, 1};
  const engine::CodePoint code = engine::first_code_point(text_.substr(offset));
  if (code.length == 0) return {malformed, 1};
  return {code.value, static_cast<std::uint8_t>(code.length)};
}

std::size_t PreTokenizer::end_of_word() const {
  if (const std::size_t end = contraction(); end != at_) return end;
  const Character first = at(at_);
  const std::size_t second = at_ + first.length;
  if (is_letter(first.value)) return letters_from(second);
  if (is_number(first.value)) return second;
  if (!is_newline(first.value)) {
    if (const std::size_t end = letters_from(second); end != second) return end;
  }
  const std::size_t symbols = first.value == ' ' ? second : at_;
  if (const std::size_t end = symbols_from(symbols); end != symbols) return newlines_from(end);
  return end_of_space();
}

// Where the contraction that starts here ends; here itself when there is none.
std::size_t PreTokenizer::contraction() const {
  if (text_[at_] != '\'' || at_ + 1 == text_.size()) return at_;
  const char one = lower(text_[at_ + 1]);
  if (one == 's' || one == 't' || one == 'm' || one == 'd') return at_ + 2;
  if (at_ + 2 == text_.size()) return at_;
  const char two = lower(text_[at_ + 2]);
  const bool known = (one == 'r' && two == 'e') || (one == 'v' && two == 'e') || (one == 'l' && two == 'l');
  return known ? at_ + 3 : at_;
}

std::size_t PreTokenizer::letters_from(std::size_t offset) const {
  for (Character c = at(offset); c.length != 0 && is_letter(c.value); c = at(offset)) offset += c.length;
  return offset;
}

std::size_t PreTokenizer::symbols_from(std::size_t offset) const {
  for (Character c = at(offset); c.length != 0 && is_symbol(c.value); c = at(offset)) offset += c.length;
  return offset;
}

std::size_t PreTokenizer::newlines_from(std::size_t offset) const {
  while (offset != text_.size() && is_newline(static_cast<unsigned char>(text_[offset]))) ++offset;
  return offset;
}

// Of the white space that starts here: up to its last line break; else, where text follows, all but its last
// character, which belongs to that text.
std::size_t PreTokenizer::end_of_space() const {
  std::size_t end = at_;
  std::size_t before_last = at_;
  std::size_t after_newline = at_;
  for (Character c = at(end); c.length != 0 && is_space(c.value); c = at(end)) {
    before_last = end;
    end += c.length;
    if (is_newline(c.value)) after_newline = end;
  }
  if (after_newline != at_) return after_newline;
  return end == text_.size() || before_last == at_ ? end : before_last;
}

}  // namespace molly::training
