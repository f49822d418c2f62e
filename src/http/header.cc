#include "http/header.h"

namespace molly::http {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

struct Phrase {
  unsigned status;
  std::string_view text;
};

constexpr Phrase phrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

}  // namespace

bool equal_names(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] != right[i] && lower(left[i]) != lower(right[i])) return false;
  }
  return true;
}

std::string_view reason_phrase(unsigned status) {
  for (const Phrase& phrase : phrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Unknown";
}

bool is_header_value(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) return false;
  }
  return true;
}

bool is_header_name(std::string_view text) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && marks.find(c) == std::string_view::npos) return false;
  }
  return !text.empty();
}

std::optional<std::string_view> HeaderList::find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name_size != name.size()) continue;
    const std::string_view bytes = bytes_;
    if (equal_names(bytes.substr(field.begin, field.name_size), name)) {
      return bytes.substr(field.begin + field.name_size, field.value_size);
    }
  }
  return std::nullopt;
}

std::size_t HeaderList::count(std::string_view name) const {
  std::size_t found = 0;
  for (const Header header : *this) found += equal_names(header.name, name) ? 1 : 0;
  return found;
}

Header HeaderList::operator[](std::size_t index) const {
  const Field& field = fields_[index];
  const std::string_view bytes = bytes_;
  return {bytes.substr(field.begin, field.name_size), bytes.substr(field.begin + field.name_size, field.value_size)};
}

void HeaderList::add(std::string_view name, std::string_view value) {
  fields_.push_back({static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(name.size()),
                     static_cast<std::uint32_t>(value.size())});
  bytes_.append(name).append(value);
}

void HeaderList::clear() {
  bytes_.clear();
  fields_.clear();
}

}  // namespace molly::http
