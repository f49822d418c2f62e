#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace molly::gguf {

// Builds small GGUF files for tests, right or wrong on purpose.
class FileWriter {
 public:
  template <class Number>
  FileWriter& number(Number value) {
    std::uint8_t bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  FileWriter& text(std::string_view value) {
    number<std::uint64_t>(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  FileWriter& start(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    bytes_.insert(bytes_.end(), {'G', 'G', 'U', 'F'});
    return number(version).number(tensors).number(keys);
  }
  FileWriter& key(std::string_view name, std::uint32_t type) { return text(name).number(type); }
  FileWriter& string_entry(std::string_view name, std::string_view value) { return key(name, 8).text(value); }
  FileWriter& number_entry(std::string_view name, std::uint32_t value) { return key(name, 4).number(value); }
  FileWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                     std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(dimensions.size()));
    for (const auto size : dimensions) number(size);
    return number(type).number(offset);
  }
  FileWriter& data(std::size_t count) {
    while (bytes_.size() % 32 != 0) bytes_.push_back(0);
    bytes_.insert(bytes_.end(), count, 0);
    return *this;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

// A complete tiny model with metadata of every kind.
inline FileWriter small_model() {
  FileWriter file;
  file.start(2, 12);
  file.string_entry("general.architecture", "llama").string_entry("general.name", "Small");
  file.number_entry("llama.block_count", 2).number_entry("llama.context_length", 128);
  file.number_entry("llama.embedding_length", 64).number_entry("llama.attention.head_count", 4);
  file.key("llama.attention.head_count_kv", 9).number<std::uint32_t>(5).number<std::uint64_t>(2);
  file.number<std::int32_t>(2).number<std::int32_t>(0);
  file.key("tokenizer.ggml.tokens", 9).number<std::uint32_t>(8).number<std::uint64_t>(3).text("a").text("b").text("");
  file.key("tokenizer.ggml.scores", 9).number<std::uint32_t>(6).number<std::uint64_t>(2).number(1.0F).number(2.0F);
  file.string_entry("tokenizer.chat_template", "{{ messages }}");
  file.key("some.flag", 7).number<std::uint8_t>(1);
  file.key("some.real", 12).number(2.5);
  file.tensor("embedding", {64, 3}, 2, 0).tensor("norm", {64}, 0, 128);
  return file.data(128 + 256);
}

}  // namespace molly::gguf
