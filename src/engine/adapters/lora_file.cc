#include "engine/adapters/lora_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/os/file_descriptor.h"
#include "base/os/system_error.h"
#include "engine/adapters/factor_pairs.h"
#include "engine/adapters/lora_formats.h"
#include "engine/text/utf8.h"

namespace molly::engine {
namespace {

using FileBytes = std::vector<std::uint8_t>;

constexpr std::uint64_t max_file_bytes = 4ULL << 30;
constexpr std::uint64_t max_config_bytes = 1ULL << 20;

// Not more than the file had when it was opened, and less where it was cut meanwhile.
Result<FileBytes> read_all(int file, std::uint64_t length, const std::filesystem::path& path) {
  FileBytes bytes(length);
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = ::pread(file, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_failure("read " + path.string());
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

Result<FileBytes> read_bytes(const std::filesystem::path& path, std::uint64_t most) {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return base::system_failure("open " + path.string());
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return base::system_failure("read " + path.string());
  if (!S_ISREG(status.st_mode)) return failure(ErrorCode::io_failed, path.string() + " is not a file");
  const auto length = static_cast<std::uint64_t>(status.st_size);
  if (length > most) {
    return failure(ErrorCode::invalid_request,
                   path.string() + " is longer than " + std::to_string(most) + " bytes: no adapter is");
  }
  return read_all(file.get(), length, path);
}

Result<LoraFile> read_gguf(const std::filesystem::path& path, const BaseShape& base) {
  const auto bytes = read_bytes(path, max_file_bytes);
  if (!bytes) return std::unexpected(bytes.error());
  return parse_lora_gguf(*bytes, base);
}

Result<LoraFile> read_peft(const std::filesystem::path& weights, const BaseShape& base) {
  const auto config = read_bytes(weights.parent_path() / "adapter_config.json", max_config_bytes);
  if (!config) return std::unexpected(config.error());
  const auto bytes = read_bytes(weights, max_file_bytes);
  if (!bytes) return std::unexpected(bytes.error());
  return parse_lora_peft(*bytes, {reinterpret_cast<const char*>(config->data()), config->size()}, base);
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

constexpr std::array<std::string_view, projection_count> projection_names{
    "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};

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
