#include "engine/adapters/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <string_view>

#include "engine/adapters/factor_pairs.h"
#include "wire/json_reader.h"

namespace molly::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::size_t length_bytes = sizeof(std::uint64_t);  // in front of the header
constexpr std::uint64_t max_header_bytes = 16ULL << 20;
constexpr std::size_t max_dimensions = 4;
constexpr std::size_t max_tensors = 100'000;

struct Entry {
  SafeTensor tensor;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

std::optional<std::uint64_t> bytes_of_element(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" || dtype.starts_with("F8_")) return 1;
  return std::nullopt;
}

void read_shape(wire::JsonReader& json, Entry& entry) {
  json.array([&](std::uint32_t index) {
    if (index >= max_dimensions) return json.fail("has too many dimensions");
    entry.tensor.shape.push_back(json.unsigned_integer());
  });
}

void read_offsets(wire::JsonReader& json, Entry& entry) {
  std::uint32_t count = 0;
  json.array([&](std::uint32_t index) {
    if (index >= 2) return json.fail("must be two numbers");
    (index == 0 ? entry.begin : entry.end) = json.unsigned_integer();
    count = index + 1;
  });
  if (count != 2) json.fail("must be two numbers");
}

Entry read_entry(wire::JsonReader& json, std::string_view name) {
  Entry entry;
  entry.tensor.name = name;
  std::set<std::string, std::less<>> seen;
  json.object([&](std::string_view key) {
    if (!seen.emplace(key).second) return json.fail("is there twice");
    if (key == "dtype") {
      entry.tensor.dtype = json.string();
    } else if (key == "shape") {
      read_shape(json, entry);
    } else if (key == "data_offsets") {
      read_offsets(json, entry);
    } else {
      json.skip();
    }
  });
  for (const char* needed : {"dtype", "shape", "data_offsets"}) {
    if (!seen.contains(needed)) json.fail_member(needed, "is missing");
  }
  return entry;
}

Result<std::string> header_text(const ByteSource& file) {
  std::array<std::uint8_t, length_bytes> first{};
  if (file.size() < first.size()) return refusal("this is no safetensors file: it is too short");
  if (auto read = file.read(0, first); !read) return std::unexpected(std::move(read.error()));
  const auto length = std::bit_cast<std::uint64_t>(first);
  if (length > max_header_bytes) return refusal("this is no safetensors file, or its header is too long");
  if (length > file.size() - first.size()) return refusal("the file is cut off: it ends within its header");
  std::string text(length, '\0');
  auto read = file.read(first.size(), {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (!read) return std::unexpected(std::move(read.error()));
  return text;
}

Result<std::vector<Entry>> read_header(std::string_view text) {
  wire::JsonReader json(text);
  std::vector<Entry> entries;
  json.object([&](std::string_view name) {
    if (name == "__metadata__") return json.skip();
    if (entries.size() == max_tensors) return json.fail("is one tensor too many");
    entries.push_back(read_entry(json, name));
  });
  json.expect_end();
  if (json.ok()) return entries;
  return refusal("the safetensors header is wrong: " + shown(json.path()) + " " + json.problem());
}

Result<void> check_size(const Entry& entry) {
  const auto element = bytes_of_element(entry.tensor.dtype);
  if (!element) return refusal(shown(entry.tensor.name) + ": its type " + shown(entry.tensor.dtype) + " is not known");
  std::uint64_t bytes = *element;
  for (const auto size : entry.tensor.shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return refusal(shown(entry.tensor.name) + ": it has an impossible size");
    }
  }
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    return refusal(shown(entry.tensor.name) + ": its place in the file does not have the size of its shape");
  }
  return {};
}

// In the order of their places: each begins where the one before ended.
Result<void> place(std::vector<Entry>& entries, std::uint64_t data_offset, std::uint64_t data_bytes) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t position = 0;
  for (auto& entry : entries) {
    if (entry.begin < position)
      return refusal(shown(entry.tensor.name) + ": its numbers overlap those of another tensor");
    if (entry.begin > position) return refusal("before " + shown(entry.tensor.name) + " are bytes of no tensor");
    if (entry.end > data_bytes) return refusal("the file is cut off: it ends within " + shown(entry.tensor.name));
    entry.tensor.offset = data_offset + entry.begin;
    position = entry.end;
  }
  if (position != data_bytes) return refusal("after the last tensor are bytes of no tensor");
  return {};
}

Result<void> check_names(const std::vector<Entry>& entries) {
  std::set<std::string_view> names;
  for (const auto& entry : entries) {
    if (!names.insert(entry.tensor.name).second) return refusal(shown(entry.tensor.name) + ": the file has it twice");
  }
  return {};
}

}  // namespace

Result<std::vector<SafeTensor>> parse_safetensors(const ByteSource& file) {
  const auto text = header_text(file);
  if (!text) return std::unexpected(text.error());
  auto entries = read_header(*text);
  if (!entries) return std::unexpected(std::move(entries.error()));
  for (const auto& entry : *entries) {
    if (auto fits = check_size(entry); !fits) return std::unexpected(std::move(fits.error()));
  }
  if (auto unique = check_names(*entries); !unique) return std::unexpected(std::move(unique.error()));
  const std::uint64_t data_offset = length_bytes + text->size();
  auto placed = place(*entries, data_offset, file.size() - data_offset);
  if (!placed) return std::unexpected(std::move(placed.error()));
  std::vector<SafeTensor> tensors;
  for (auto& entry : *entries) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

}  // namespace molly::engine
