#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace molly::http {

// One header to send. The views need to live only as long as the call that takes them.
struct Header {
  std::string_view name;
  std::string_view value;
};

// ASCII letters compare without case; everything else byte by byte.
bool equal_names(std::string_view left, std::string_view right);

// "OK" for 200; "Unknown" for a status without a standard phrase.
std::string_view reason_phrase(unsigned status);

// True where the text may stand in a header's value: no control characters but tab.
bool is_header_value(std::string_view text);

// True for a token: what a header's name or a method may be.
bool is_header_name(std::string_view text);

// The headers of one message in the order they came, in one block of memory that is reused. Views into it
// are valid until the next add() or clear().
class HeaderList {
 public:
  class Iterator {
   public:
    Iterator(const HeaderList* list, std::size_t index) : list_(list), index_(index) {}
    Header operator*() const { return (*list_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const HeaderList* list_;
    std::size_t index_;
  };

  // The first header of that name, compared without case.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;

  Header operator[](std::size_t index) const;
  std::size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, fields_.size()}; }

  void add(std::string_view name, std::string_view value);
  void clear();

 private:
  struct Field {
    std::uint32_t begin;
    std::uint32_t name_size;
    std::uint32_t value_size;
  };
  std::string bytes_;
  std::vector<Field> fields_;
};

}  // namespace molly::http
