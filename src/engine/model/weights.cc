#include "engine/model/weights.h"

#include <fcntl.h>
#include <ggml.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <thread>

#include "base/os/file_descriptor.h"
#include "base/os/zeroed_allocator.h"

namespace molly::engine {
namespace {

std::unexpected<Error> refuse(std::string sentence) { return failure(ErrorCode::invalid_request, std::move(sentence)); }

// A tensor of ours and the file's tensors whose rows it holds, in order.
struct Wanted {
  ggml_tensor* tensor = nullptr;
  std::vector<const gguf::Tensor*> sources;
  ggml_backend_buffer_type_t repacked = nullptr;  // null: plain
  PackedMatrix* packed = nullptr;                 // null: multiplied by ggml
};

bool is_computable(std::uint32_t type) {
  switch (type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_Q2_K:
    case GGML_TYPE_Q3_K:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K:
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_IQ4_XS: return true;
    default: return false;
  }
}

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  static Result<Mapping> of(const std::filesystem::path& path, std::uint64_t bytes) {
    const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0)
      return failure(ErrorCode::io_failed, "cannot open " + path.string() + ": " + std::strerror(errno));
    // Private and writable, so that nothing we do can reach the file.
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
    if (data == MAP_FAILED) {
      return failure(ErrorCode::overloaded, "cannot map " + path.string() + ": " + std::strerror(errno));
    }
    Mapping out;
    out.data_ = data;
    out.bytes_ = bytes;
    return out;
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::uint64_t size() const { return bytes_; }

  // The bytes were copied elsewhere: their pages need not stay in memory.
  void drop(std::uint64_t from, std::uint64_t bytes) const {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t first = (from + page - 1) / page * page;
    const std::uint64_t last = (from + bytes) / page * page;
    if (last > first) ::madvise(data() + first, last - first, MADV_DONTNEED);
  }

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace

struct WeightMap::State {
  const Backend& backend;
  const gguf::ModelFile& file;
  std::map<std::string, const gguf::Tensor*, std::less<>> by_name;
  Context context;
  std::vector<Wanted> wanted;
  std::list<PackedMatrix> packed;
  std::optional<Error> mistake;

  void note(std::string sentence) {
    if (!mistake) mistake = Error{ErrorCode::invalid_request, std::move(sentence), ""};
  }

  const gguf::Tensor* find(const std::string& name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }

  const gguf::Tensor* checked(const std::string& name, std::int64_t ne0, std::int64_t ne1) {
    const gguf::Tensor* tensor = find(name);
    if (tensor == nullptr) {
      note("the model file has no tensor " + name);
    } else if (tensor->dimensions !=
               std::array<std::uint64_t, 4>{static_cast<std::uint64_t>(ne0), static_cast<std::uint64_t>(ne1), 1, 1}) {
      note("tensor " + name + " has the shape " + std::to_string(tensor->dimensions[0]) + " x " +
           std::to_string(tensor->dimensions[1]) + ", not " + std::to_string(ne0) + " x " + std::to_string(ne1));
    } else if (!is_computable(tensor->type)) {
      note("tensor " + name + " is of a type that the engine does not compute with");
    } else if (ne0 % ggml_blck_size(static_cast<ggml_type>(tensor->type)) != 0) {
      note("tensor " + name + " has rows that are no whole blocks of its type");
    } else {
      return tensor;
    }
    return nullptr;
  }

  ggml_tensor* want(std::vector<const gguf::Tensor*> sources, ggml_backend_buffer_type_t repacked) {
    std::int64_t rows = 0;
    for (const gguf::Tensor* source : sources) rows += static_cast<std::int64_t>(source->dimensions[1]);
    ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), static_cast<ggml_type>(sources.front()->type),
                                             static_cast<std::int64_t>(sources.front()->dimensions[0]), rows);
    wanted.push_back({tensor, std::move(sources), repacked});
    return tensor;
  }

  Matrix want_matrix(std::vector<const gguf::Tensor*> sources) {
    const auto type = static_cast<ggml_type>(sources.front()->type);
    Matrix matrix{.tensor = want(std::move(sources), nullptr)};
    const std::int64_t n_in = matrix.tensor->ne[0];
    const std::int64_t n_out = matrix.tensor->ne[1];
    if (const auto own = backend.packed(type, n_in)) {
      packed.push_back(
          {.type = *own, .n_in = static_cast<std::uint32_t>(n_in), .n_out = static_cast<std::uint32_t>(n_out)});
      wanted.back().packed = &packed.back();
      matrix.packed = &packed.back();
    } else {
      wanted.back().repacked = backend.repacked(type, n_in, n_out);
    }
    return matrix;
  }
};

WeightMap::WeightMap(const Backend& backend, const gguf::ModelFile& file)
    : state_(new State{backend, file, {}, describe_tensors(3 * file.tensors.size() + 64), {}, {}, {}}) {
  for (const gguf::Tensor& tensor : file.tensors) state_->by_name.emplace(tensor.name, &tensor);
}

WeightMap::~WeightMap() = default;

bool WeightMap::has(const std::string& name) const { return state_->find(name) != nullptr; }

ggml_tensor* WeightMap::plain(const std::string& name, std::int64_t ne0, std::int64_t ne1) {
  const gguf::Tensor* source = state_->checked(name, ne0, ne1);
  return source == nullptr ? nullptr : state_->want({source}, nullptr);
}

ggml_tensor* WeightMap::optional_plain(const std::string& name, std::int64_t ne0, std::int64_t ne1) {
  return has(name) ? plain(name, ne0, ne1) : nullptr;
}

Matrix WeightMap::matrix(const std::string& name, std::int64_t n_in, std::int64_t n_out) {
  const gguf::Tensor* source = state_->checked(name, n_in, n_out);
  return source == nullptr ? Matrix{} : state_->want_matrix({source});
}

Linear WeightMap::linear(std::uint32_t layer, Part part) {
  std::vector<Linear> made = linears(layer, {part});
  return made.empty() ? Linear{} : std::move(made.front());
}

std::vector<Linear> WeightMap::linears(std::uint32_t layer, std::initializer_list<Part> parts) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  std::vector<Linear> out;
  const Part* part = parts.begin();
  while (part != parts.end()) {
    Linear linear;
    std::vector<const gguf::Tensor*> matrices;
    std::vector<const gguf::Tensor*> biases;
    std::int64_t columns = 0;
    for (; part != parts.end(); ++part) {
      const std::string name = prefix + std::string(to_string(part->projection));
      const gguf::Tensor* matrix = state_->checked(name + ".weight", part->n_in, part->n_out);
      if (matrix == nullptr) return {};
      const bool has_bias = has(name + ".bias");
      if (!matrices.empty() && (matrix->type != matrices.front()->type || has_bias == biases.empty())) break;
      const gguf::Tensor* bias = has_bias ? state_->checked(name + ".bias", part->n_out, 1) : nullptr;
      if (bias != nullptr && bias->type != GGML_TYPE_F32) state_->note("bias " + name + " is not F32");
      if (bias != nullptr) biases.push_back(bias);
      matrices.push_back(matrix);
      linear.segments.push_back(
          {part->projection, static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(part->n_out)});
      columns += part->n_out;
    }
    linear.weight = state_->want_matrix(std::move(matrices));
    if (!biases.empty()) {
      linear.bias = ggml_new_tensor_1d(state_->context.get(), GGML_TYPE_F32, columns);
      state_->wanted.push_back({linear.bias, std::move(biases)});
    }
    out.push_back(std::move(linear));
  }
  return out;
}

using PackedMemory = std::vector<std::byte, base::ZeroedAllocator<std::byte>>;

struct LoadedWeights::State {
  Mapping file;
  Context context;  // the tensors' descriptions
  std::vector<Buffer> buffers;
  std::list<PackedMatrix> packed;
  PackedMemory packed_memory;
  std::uint64_t mapped = 0;
  std::uint64_t copied = 0;
};

namespace {

// Rows of several tensors, one after the other, or the file's own bytes where there is one.
class Rows {
 public:
  Rows(const Mapping& file, std::uint64_t data_offset) : file_(file), data_offset_(data_offset) {}

  const void* gather(const Wanted& wanted) {
    if (wanted.sources.size() == 1) return at(*wanted.sources.front());
    gathered_.clear();
    for (const gguf::Tensor* source : wanted.sources) {
      const std::byte* bytes = at(*source);
      gathered_.insert(gathered_.end(), bytes, bytes + source->bytes);
    }
    return gathered_.data();
  }

  void drop(const Wanted& wanted) const {
    for (const gguf::Tensor* source : wanted.sources) file_.drop(data_offset_ + source->offset, source->bytes);
  }

  std::byte* at(const gguf::Tensor& source) const { return file_.data() + data_offset_ + source.offset; }

 private:
  const Mapping& file_;
  std::uint64_t data_offset_;
  std::vector<std::byte> gathered_;
};

bool stays_mapped(const Wanted& wanted, std::uint64_t data_offset) {
  constexpr std::uint64_t alignment = 32;
  return wanted.repacked == nullptr && wanted.packed == nullptr && wanted.sources.size() == 1 &&
         (data_offset + wanted.sources.front()->offset) % alignment == 0;
}

std::size_t padded(ggml_backend_buffer_type_t type, const ggml_tensor* tensor) {
  const std::size_t alignment = ggml_backend_buft_get_alignment(type);
  return (ggml_backend_buft_get_alloc_size(type, tensor) + alignment - 1) / alignment * alignment;
}

// Places all tensors of one buffer type in one buffer.
Result<Buffer> place(ggml_backend_buffer_type_t type, std::span<Wanted* const> all) {
  std::size_t bytes = 0;
  for (const Wanted* wanted : all) bytes += padded(type, wanted->tensor);
  Buffer buffer(ggml_backend_buft_alloc_buffer(type, bytes));
  if (!buffer) return failure(ErrorCode::overloaded, "there is no memory for the model's weights");
  ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  auto* address = static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer.get()));
  for (const Wanted* wanted : all) {
    ggml_backend_tensor_alloc(buffer.get(), wanted->tensor, address);
    address += padded(type, wanted->tensor);
  }
  return buffer;
}

std::size_t bytes_of(const PackedMatrix& matrix) { return packed_bytes(matrix.type, matrix.n_in, matrix.n_out); }

void pack_with_threads(const PackedMatrix& matrix, std::span<const std::byte> rows, std::byte* to,
                       std::uint32_t threads) {
  std::vector<std::jthread> others;
  for (std::uint32_t part = 1; part < threads; ++part) {
    others.emplace_back([=, &matrix] { pack(matrix.type, rows, matrix.n_in, matrix.n_out, to, part, threads); });
  }
  pack(matrix.type, rows, matrix.n_in, matrix.n_out, to, 0, threads);
}

PackedMemory pack_all(std::span<const Wanted> all, Rows& rows, std::uint32_t threads) {
  std::size_t bytes = 0;
  for (const Wanted& wanted : all) bytes += wanted.packed == nullptr ? 0 : bytes_of(*wanted.packed);
  PackedMemory memory(bytes);
  std::byte* address = memory.data();
  for (const Wanted& wanted : all) {
    if (wanted.packed == nullptr) continue;
    const auto* source = static_cast<const std::byte*>(rows.gather(wanted));
    pack_with_threads(*wanted.packed, {source, ggml_nbytes(wanted.tensor)}, address, threads);
    wanted.packed->data = address;
    address += bytes_of(*wanted.packed);
    rows.drop(wanted);
  }
  return memory;
}

}  // namespace

LoadedWeights::LoadedWeights(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedWeights::~LoadedWeights() = default;
std::uint64_t LoadedWeights::mapped_bytes() const { return state_->mapped; }
std::uint64_t LoadedWeights::copied_bytes() const { return state_->copied; }

Result<std::unique_ptr<LoadedWeights>> LoadedWeights::load(const std::filesystem::path& path, WeightMap& map,
                                                           const Backend& backend) {
  WeightMap::State& collected = *map.state_;
  if (collected.mistake) return std::unexpected(*collected.mistake);
  auto state = std::make_unique<State>();
  auto file = Mapping::of(path, collected.file.file_bytes);
  if (!file) return std::unexpected(file.error());
  state->file = std::move(*file);
  const std::uint64_t data_offset = collected.file.data_offset;
  Buffer mapped(backend.wrap(state->file.data(), state->file.size()));
  if (!mapped) return refuse("ggml refuses the mapped model file");
  ggml_backend_buffer_set_usage(mapped.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  Rows rows(state->file, data_offset);
  std::map<ggml_backend_buffer_type_t, std::vector<Wanted*>> copied;
  for (Wanted& wanted : collected.wanted) {
    if (wanted.packed != nullptr) continue;
    if (stays_mapped(wanted, data_offset)) {
      ggml_backend_tensor_alloc(mapped.get(), wanted.tensor, rows.at(*wanted.sources.front()));
      state->mapped += wanted.sources.front()->bytes;
    } else {
      copied[wanted.repacked != nullptr ? wanted.repacked : backend.plain()].push_back(&wanted);
    }
  }
  for (const auto& [type, all] : copied) {
    auto buffer = place(type, all);
    if (!buffer) return std::unexpected(buffer.error());
    for (const Wanted* wanted : all) {
      ggml_backend_tensor_set(wanted->tensor, rows.gather(*wanted), 0, ggml_nbytes(wanted->tensor));
      rows.drop(*wanted);
    }
    state->copied += ggml_backend_buffer_get_size(buffer->get());
    state->buffers.push_back(std::move(*buffer));
  }
  state->packed_memory = pack_all(collected.wanted, rows, backend.threads());
  state->packed = std::move(collected.packed);
  state->copied += state->packed_memory.size();
  state->buffers.push_back(std::move(mapped));
  state->context = std::move(collected.context);
  return std::unique_ptr<LoadedWeights>(new LoadedWeights(std::move(state)));
}

}  // namespace molly::engine
