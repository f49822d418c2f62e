#include "gguf/header.h"

#include <bit>
#include <limits>

namespace molly::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

constexpr std::uint32_t magic = 0x46554747;  // "GGUF"
constexpr std::uint64_t default_alignment = 32;

enum class ValueType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64,
};

std::uint64_t fixed_size(ValueType type) {
  switch (type) {
    case ValueType::uint8:
    case ValueType::int8:
    case ValueType::boolean: return 1;
    case ValueType::uint16:
    case ValueType::int16: return 2;
    case ValueType::uint32:
    case ValueType::int32:
    case ValueType::float32: return 4;
    case ValueType::uint64:
    case ValueType::int64:
    case ValueType::float64: return 8;
    case ValueType::string:
    case ValueType::array: return 0;
  }
  return 0;
}

class HeaderReader {
 public:
  HeaderReader(Reader& reader, std::uint64_t file_bytes, const Limits& limits)
      : reader_(reader), file_bytes_(file_bytes), limits_(limits) {}

  ModelFile read() {
    model_.file_bytes = file_bytes_;
    if (reader_.number<std::uint32_t>() != magic) reader_.fail("it does not start as a GGUF file does");
    model_.version = reader_.number<std::uint32_t>();
    if (model_.version != 2 && model_.version != 3) {
      reader_.fail("its format version " + std::to_string(model_.version) + " is not 2 or 3");
    }
    const auto tensors = reader_.number<std::uint64_t>();
    const auto keys = reader_.number<std::uint64_t>();
    if (tensors > limits_.max_tensors || keys > limits_.max_keys) reader_.fail("it announces too many tensors or keys");
    for (std::uint64_t i = 0; i < keys && reader_.good(); ++i) read_entry();
    for (std::uint64_t i = 0; i < tensors && reader_.good(); ++i) read_tensor();
    if (reader_.good()) place_tensors();
    return std::move(model_);
  }

 private:
  std::string read_text() {
    const auto length = reader_.number<std::uint64_t>();
    if (length > limits_.max_string_bytes || length > limits_.max_kept_bytes - kept_bytes_) {
      reader_.fail("it holds a text that is too long");
      return {};
    }
    kept_bytes_ += length;
    return reader_.text(length);
  }

  void read_entry() {
    auto key = read_text();
    const auto type = static_cast<ValueType>(reader_.number<std::uint32_t>());
    auto value = read_value(type);
    if (!reader_.good()) return;
    if (!model_.metadata.emplace(std::move(key), std::move(value)).second) reader_.fail("it says the same key twice");
  }

  Value read_value(ValueType type) {
    switch (type) {
      case ValueType::boolean: return reader_.number<std::uint8_t>() != 0;
      case ValueType::string: return read_text();
      case ValueType::array: return read_array();
      case ValueType::float32: return static_cast<double>(reader_.number<float>());
      case ValueType::float64: return reader_.number<double>();
      default: return read_integer(type);
    }
  }

  Value read_integer(ValueType type) {
    switch (type) {
      case ValueType::uint8: return std::uint64_t{reader_.number<std::uint8_t>()};
      case ValueType::uint16: return std::uint64_t{reader_.number<std::uint16_t>()};
      case ValueType::uint32: return std::uint64_t{reader_.number<std::uint32_t>()};
      case ValueType::uint64: return reader_.number<std::uint64_t>();
      case ValueType::int8: return std::int64_t{reader_.number<std::int8_t>()};
      case ValueType::int16: return std::int64_t{reader_.number<std::int16_t>()};
      case ValueType::int32: return std::int64_t{reader_.number<std::int32_t>()};
      case ValueType::int64: return reader_.number<std::int64_t>();
      default: reader_.fail("it holds a value of an unknown type"); return false;
    }
  }

  Value read_array() {
    ArrayValue array;
    const auto type = static_cast<ValueType>(reader_.number<std::uint32_t>());
    array.count = reader_.number<std::uint64_t>();
    const bool kept = array.count <= limits_.max_kept_elements;
    if (type == ValueType::string) {
      // Each takes at least its length's eight bytes: an announced count beyond that is refused without reading on.
      if (array.count > reader_.left() / 8) reader_.fail("an array in it is longer than the file");
      for (std::uint64_t i = 0; i < array.count && reader_.good(); ++i) read_string_element(array, kept);
      return array;
    }
    const std::uint64_t size = fixed_size(type);
    if (size == 0) reader_.fail("it holds an array of an unknown type");
    if (!reader_.good()) return array;
    if (array.count > reader_.left() / size) {
      reader_.fail("an array in it is longer than the file");
    } else if (!kept || type == ValueType::float32 || type == ValueType::float64) {
      reader_.skip(array.count * size);
    } else {
      for (std::uint64_t i = 0; i < array.count; ++i) array.integers.push_back(read_integer_element(type));
    }
    return array;
  }

  void read_string_element(ArrayValue& array, bool kept) {
    if (kept) {
      array.strings.push_back(read_text());
    } else {
      reader_.skip(reader_.number<std::uint64_t>());
    }
  }

  std::int64_t read_integer_element(ValueType type) {
    if (type == ValueType::boolean) return reader_.number<std::uint8_t>() != 0 ? 1 : 0;
    const Value value = read_integer(type);
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    const auto* number = std::get_if<std::uint64_t>(&value);
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    return number != nullptr ? static_cast<std::int64_t>(std::min(*number, largest)) : 0;
  }

  void read_tensor() {
    Tensor tensor;
    tensor.name = read_text();
    const auto dimensions = reader_.number<std::uint32_t>();
    if (dimensions > tensor.dimensions.size()) return reader_.fail("a tensor in it has more than four dimensions");
    for (std::uint32_t i = 0; i < dimensions; ++i) tensor.dimensions[i] = reader_.number<std::uint64_t>();
    tensor.type = reader_.number<std::uint32_t>();
    tensor.offset = reader_.number<std::uint64_t>();
    if (reader_.good()) measure(tensor);
    model_.tensors.push_back(std::move(tensor));
  }

  void measure(Tensor& tensor) {
    std::uint64_t elements = 1;
    for (const auto size : tensor.dimensions) {
      if (__builtin_mul_overflow(elements, size, &elements))
        return reader_.fail("a tensor in it has an impossible size");
    }
    if (__builtin_add_overflow(model_.parameters, elements, &model_.parameters)) {
      return reader_.fail("its tensors have an impossible size");
    }
    const auto layout = type_layout(tensor.type);
    if (!layout) return;  // place_tensors finds its size
    if (tensor.dimensions[0] % layout->elements != 0)
      return reader_.fail("a row of a tensor is no whole number of blocks");
    if (__builtin_mul_overflow(elements / layout->elements, std::uint64_t{layout->bytes}, &tensor.bytes)) {
      reader_.fail("a tensor in it has an impossible size");
    }
  }

  void place_tensors() {
    const auto alignment = model_.number("general.alignment").value_or(default_alignment);
    if (!std::has_single_bit(alignment) || alignment > (1U << 20))
      return reader_.fail("its alignment is no power of two");
    const std::uint64_t rest = reader_.position() % alignment;
    model_.data_offset = reader_.position() + (rest == 0 ? 0 : alignment - rest);
    const std::uint64_t room = file_bytes_ - std::min(file_bytes_, model_.data_offset);
    measure_unknown_types(room);
    for (const auto& tensor : model_.tensors) {
      if (tensor.offset % alignment != 0) return reader_.fail("a tensor in it is not aligned");
      if (tensor.offset > room || tensor.bytes > room - tensor.offset) {
        return reader_.fail("it is cut off: " + std::to_string(file_bytes_) + " bytes do not hold all its tensors");
      }
      // Cannot wrap by much: tensors may overlap in a hostile file, so the sum is capped by what the file has.
      model_.tensor_bytes = std::min(room, model_.tensor_bytes + tensor.bytes);
    }
  }

  void measure_unknown_types(std::uint64_t room) {
    std::vector<std::uint64_t> starts{room};
    for (const auto& tensor : model_.tensors) starts.push_back(tensor.offset);
    std::ranges::sort(starts);
    for (auto& tensor : model_.tensors) {
      if (type_layout(tensor.type)) continue;
      const auto next = std::ranges::upper_bound(starts, tensor.offset);
      if (next != starts.end()) tensor.bytes = *next - tensor.offset;
    }
  }

  Reader& reader_;
  std::uint64_t file_bytes_;
  const Limits& limits_;
  std::uint64_t kept_bytes_ = 0;
  ModelFile model_;
};

}  // namespace

ModelFile read_header(Reader& reader, std::uint64_t file_bytes, const Limits& limits) {
  return HeaderReader(reader, file_bytes, limits).read();
}

}  // namespace molly::gguf
