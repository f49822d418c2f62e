#include "gguf/model_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/os/file_descriptor.h"
#include "base/os/system_error.h"
#include "gguf/header.h"

namespace molly::gguf {
namespace {

const Value* find(const ModelFile& model, std::string_view key) {
  auto found = model.metadata.find(model.architecture + "." + std::string(key));
  if (found == model.metadata.end()) found = model.metadata.find(key);
  return found == model.metadata.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> whole_number(const Value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  const auto* number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::string main_quantization(const ModelFile& model) {
  std::map<std::uint32_t, std::uint64_t> bytes;
  for (const auto& tensor : model.tensors) {
    auto& sum = bytes[tensor.type];
    sum += std::min(tensor.bytes, model.file_bytes);
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  if (most == bytes.end()) return {};
  const auto layout = type_layout(most->first);
  return layout ? std::string(layout->name) : "type " + std::to_string(most->first);
}

std::uint64_t vocabulary_of(const ModelFile& model) {
  if (const Value* tokens = find(model, "tokenizer.ggml.tokens")) {
    if (const auto* array = std::get_if<ArrayValue>(tokens)) return array->count;
  }
  return model.number("vocab_size").value_or(0);
}

// A layer's count may differ from layer to layer; the largest is what people call "the" count.
std::uint64_t largest(const std::vector<std::uint64_t>& counts) {
  return counts.empty() ? 0 : std::ranges::max(counts);
}

Result<ModelFile> read_from(Reader reader, std::uint64_t file_bytes, const Limits& limits) {
  ModelFile model = read_header(reader, file_bytes, limits);
  if (!reader.good())
    return failure(ErrorCode::invalid_request, "this is no model file Molly can use: " + reader.failure());
  summarize(model);
  return model;
}

}  // namespace

void summarize(ModelFile& model) {
  model.architecture = model.text("general.architecture").value_or("");
  model.name = model.text("general.name").value_or("");
  model.context_length = model.number("context_length").value_or(0);
  model.embedding_length = model.number("embedding_length").value_or(0);
  model.layers = model.number("block_count").value_or(0);
  model.heads = largest(model.per_layer("attention.head_count", 0));
  model.vocabulary = vocabulary_of(model);
  model.chat_template = model.text("tokenizer.chat_template").value_or("");
  model.quantization = main_quantization(model);
}

std::optional<std::uint64_t> ModelFile::number(std::string_view key) const {
  const Value* value = find(*this, key);
  return value == nullptr ? std::nullopt : whole_number(*value);
}

std::optional<std::string> ModelFile::text(std::string_view key) const {
  const Value* value = find(*this, key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::vector<std::uint64_t> ModelFile::per_layer(std::string_view key, std::uint64_t fallback) const {
  // A hostile count of layers must not decide how much is allocated.
  constexpr std::uint64_t most_layers = 4096;
  std::vector<std::uint64_t> counts(std::min(layers, most_layers), fallback);
  const Value* value = find(*this, key);
  if (value == nullptr) return counts;
  if (const auto one = whole_number(*value)) {
    std::ranges::fill(counts, *one);
  } else if (const auto* array = std::get_if<ArrayValue>(value)) {
    for (std::size_t i = 0; i < std::min(counts.size(), array->integers.size()); ++i) {
      counts[i] = static_cast<std::uint64_t>(std::max<std::int64_t>(0, array->integers[i]));
    }
  }
  return counts;
}

Result<ModelFile> read_model_file(const std::filesystem::path& path, const Limits& limits) {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return base::system_failure("open " + path.string());
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return base::system_failure("read " + path.string());
  if (!S_ISREG(status.st_mode)) return failure(ErrorCode::io_failed, path.string() + " is not a file");
  int error = 0;
  const auto source = [&](std::uint64_t position, std::span<std::uint8_t> into) -> std::size_t {
    ssize_t count = 0;
    do count = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(position));
    while (count < 0 && errno == EINTR);
    if (count < 0) error = errno;
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  };
  auto model = parse_model_file(source, static_cast<std::uint64_t>(status.st_size), limits);
  if (error != 0) return base::system_failure("read " + path.string(), error);
  if (!model) model.error().message = path.string() + ": " + model.error().message;
  return model;
}

Result<ModelFile> parse_model_file(const Source& source, std::uint64_t file_bytes, const Limits& limits) {
  return read_from(Reader(source, std::min(file_bytes, limits.max_header_bytes)), file_bytes, limits);
}

Result<ModelFile> parse_model_file(std::span<const std::uint8_t> header, std::uint64_t file_bytes,
                                   const Limits& limits) {
  const auto source = [&](std::uint64_t position, std::span<std::uint8_t> into) -> std::size_t {
    const auto rest = header.subspan(std::min<std::uint64_t>(position, header.size()));
    const std::size_t count = std::min(rest.size(), into.size());
    std::copy_n(rest.begin(), count, into.begin());
    return count;
  };
  const std::uint64_t end = std::min<std::uint64_t>(header.size(), limits.max_header_bytes);
  return read_from(Reader(source, end), file_bytes, limits);
}

}  // namespace molly::gguf
