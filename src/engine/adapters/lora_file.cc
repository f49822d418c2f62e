#include "engine/adapters/lora_file.h"

#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/lora_formats.h"
#include "engine/text/utf8.h"

namespace molly::engine {
namespace {

constexpr std::uint64_t max_config_bytes = 1ULL << 20;

Result<std::string> read_config(const std::filesystem::path& path) {
  const auto file = open_bytes(path);
  if (!file) return std::unexpected(file.error());
  if ((*file)->size() > max_config_bytes) {
    return failure(ErrorCode::invalid_request,
                   path.string() + " is longer than " + std::to_string(max_config_bytes) + " bytes");
  }
  std::string text((*file)->size(), '\0');
  auto read = (*file)->read(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (!read) return std::unexpected(std::move(read.error()));
  return text;
}

Result<LoraFile> read_gguf(const std::filesystem::path& path, const BaseShape& base) {
  auto file = open_bytes(path);
  if (!file) return std::unexpected(std::move(file.error()));
  return parse_lora_gguf(*std::move(file), base);
}

Result<LoraFile> read_peft(const std::filesystem::path& weights, const BaseShape& base) {
  const auto config = read_config(weights.parent_path() / "adapter_config.json");
  if (!config) return std::unexpected(config.error());
  auto file = open_bytes(weights);
  if (!file) return std::unexpected(std::move(file.error()));
  return parse_lora_peft(*std::move(file), *config, base);
}

Result<LoraFile> read_any(const std::filesystem::path& path, const BaseShape& base) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return read_peft(path / "adapter_model.safetensors", base);
  if (path.extension() == ".gguf") return read_gguf(path, base);
  if (path.extension() == ".safetensors") return read_peft(path, base);
  return failure(ErrorCode::invalid_request,
                 "an adapter is a .gguf file, a .safetensors file or a folder that PEFT wrote");
}

// Files may say anything; what they say is shown to people.
std::string readable(const std::string& text) {
  constexpr std::size_t longest = 200;
  return is_utf8(text) && text.size() <= longest ? text : shown(text);
}

}  // namespace

std::string_view to_string(Projection projection) { return projection_names[static_cast<std::size_t>(projection)]; }

Result<LoraFile> read_lora_file(const std::filesystem::path& path, const BaseShape& base) {
  auto file = read_any(path, base);
  if (!file && file.error().code == ErrorCode::invalid_request) {
    file.error().message = path.string() + ": " + file.error().message;
  }
  if (!file) return file;
  file->name = readable(file->name.empty() ? path.stem().string() : file->name);
  file->base = readable(file->base);
  return file;
}

}  // namespace molly::engine
