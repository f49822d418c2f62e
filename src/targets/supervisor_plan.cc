#include "targets/supervisor_plan.h"

#include <sys/random.h>

#include <algorithm>
#include <stdexcept>

#include "gguf/memory.h"

extern char** environ;

namespace molly::targets {
namespace {

constexpr std::uint64_t longest_default_context = 8192;
constexpr std::size_t longest_name = 200;
constexpr std::string_view child_file_front = "m-";
constexpr std::string_view memo_head = "molly model 1";

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("the system gives no random bytes");
  }
  std::string text;
  for (const unsigned char byte : random) {
    text.push_back("0123456789abcdef"[byte >> 4]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  base::wipe(random.data(), random.size());
  return text;
}

Result<void> check_name(const std::string& name) {
  const bool printable = std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!name.empty() && name.size() <= longest_name && printable) return {};
  return failure(ErrorCode::invalid_request, "a model's name has 1 to 200 printable characters", "name");
}

// FNV-1a: the same in every build, unlike std::hash.
std::uint64_t digest(std::string_view text) {
  std::uint64_t value = 14695981039346656037ULL;
  for (const unsigned char c : text) value = (value ^ c) * 1099511628211ULL;
  return value;
}

// A model in several files: the first one's header speaks for all, the weights are the sum.
std::uint64_t bytes_of_other_parts(const std::filesystem::path& file, std::uint64_t parts) {
  const std::string name = file.filename().string();
  const std::size_t mark = name.rfind("-00001-of-");
  if (parts < 2 || mark == std::string::npos) return 0;
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(file.parent_path())) {
    const std::string other = entry.path().filename().string();
    const bool belongs = other != name && other.size() == name.size() && other.starts_with(name.substr(0, mark)) &&
                         other.ends_with(name.substr(mark + 6));
    std::error_code ignored;
    if (belongs) sum += std::min(entry.file_size(ignored), std::uint64_t{1} << 50);
  }
  return sum;
}

sizing::EnginePlan plan_now(const ModelPlan& plan, const gguf::ModelFile& model) {
  return sizing::plan_engine(
      sizing::this_device(), model,
      {.threads = plan.threads,
       .context = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan.context_length, 1U << 30)),
       .parallel = plan.slots});
}

Result<PreparedPlan> prepare_engine(ModelPlan plan, const gguf::ModelFile& model) {
  if (!plan.engine) plan.engine = plan_now(plan, model);
  const sizing::EnginePlan& engine = *plan.engine;
  if (!engine.fits()) return failure(ErrorCode::invalid_request, plan.name + ": " + engine.problem, "models.memory");
  plan.slots = engine.parallel;
  const std::uint64_t context = engine.context;
  const std::uint64_t memory = engine.memory_bytes();
  return PreparedPlan{.plan = std::move(plan), .context_length = context, .memory_bytes = memory};
}

// llama-server's own --cpu-mask leaves its threads where they were.
std::vector<std::string> bound_to(const std::string& cpus) {
  return cpus.empty() ? std::vector<std::string>() : std::vector<std::string>{"/usr/bin/taskset", "--cpu-list", cpus};
}

std::vector<std::string> llama_arguments(const PreparedPlan& prepared, const SupervisorOptions& options,
                                         const ChildFiles& files) {
  const ModelPlan& plan = prepared.plan;
  const std::uint32_t slots = std::max(plan.slots, 1U);
  const std::pair<std::string, std::string> pairs[] = {
      {"--model", plan.file.string()},
      {"--alias", plan.name},
      {"--host", files.socket.string()},
      {"--api-key-file", files.key.string()},
      // Each slot has the whole context for itself: a request that fits always runs.
      {"--parallel", std::to_string(slots)},
      {"--ctx-size", std::to_string(prepared.context_length * slots)},
      {"--cache-ram", std::to_string(options.cache_bytes >> 20)}};
  std::vector<std::string> out = bound_to(plan.cpus);
  out.push_back(options.server.string());
  for (const auto& [name, value] : pairs) out.insert(out.end(), {name, value});
  out.insert(out.end(), {"--log-jsonl", "--no-ui", "--offline"});
  return out;
}

std::vector<std::string> engine_arguments(const PreparedPlan& prepared, const SupervisorOptions& options,
                                          const ChildFiles& files) {
  const ModelPlan& plan = prepared.plan;
  const sizing::EnginePlan& engine = *plan.engine;
  const std::pair<std::string, std::string> pairs[] = {{"--model", plan.file.string()},
                                                       {"--alias", plan.name},
                                                       {"--listen", "unix:" + files.socket.string()},
                                                       {"--key-file", files.key.string()},
                                                       {"--parallel", std::to_string(engine.parallel)},
                                                       {"--context", std::to_string(engine.context)},
                                                       {"--pool", std::to_string(engine.pool_bytes())},
                                                       {"--warm", std::to_string(engine.warm_bytes)},
                                                       {"--kv-type", std::string(to_string(engine.kv_type))}};
  std::vector<std::string> out{options.engine.string(), "serve"};
  for (const auto& [name, value] : pairs) out.insert(out.end(), {name, value});
  if (!plan.cpus.empty()) out.insert(out.end(), {"--cpus", plan.cpus});
  return out;
}

}  // namespace

std::string_view to_string(ModelServer server) {
  return server == ModelServer::molly_engine ? "molly-engine" : "llama-server";
}

Result<PreparedPlan> prepare_plan(const ModelPlan& plan, const SupervisorOptions& options) {
  if (auto named = check_name(plan.name); !named) return std::unexpected(named.error());
  auto model = gguf::read_model_file(plan.file);
  if (!model) return std::unexpected(model.error());
  if (plan.server == ModelServer::molly_engine) return prepare_engine(plan, *model);
  const std::uint64_t trained = model->context_length == 0 ? longest_default_context : model->context_length;
  const std::uint64_t context =
      plan.context_length != 0 ? plan.context_length : std::min(trained, longest_default_context);
  const std::uint64_t slots = std::max(plan.slots, 1U);
  const std::uint64_t all = context > (std::uint64_t{1} << 40) ? context : context * slots;
  PreparedPlan prepared{.plan = plan, .context_length = context};
  prepared.memory_bytes =
      gguf::estimate_memory(*model, all).total() + std::min(options.cache_bytes, std::uint64_t{1} << 50);
  prepared.memory_bytes += bytes_of_other_parts(plan.file, model->number("split.count").value_or(1));
  if (!plan.projector.empty()) {
    const auto projector = gguf::read_model_file(plan.projector);
    if (!projector) return std::unexpected(projector.error());
    prepared.memory_bytes += gguf::estimate_memory(*projector, 1).total();
  }
  return prepared;
}

ChildFiles new_child_files(const std::filesystem::path& run_folder) {
  const std::string name = std::string(child_file_front) + random_hex(6);
  return {.socket = run_folder / (name + ".sock"), .key = run_folder / (name + ".key")};
}

void remove_child_files(const ChildFiles& files) {
  if (files.socket.empty()) return;  // it never came so far
  for (const auto& file : {files.socket.string(), files.socket.string() + ".lock", files.key.string()}) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
}

bool is_child_file(const std::filesystem::path& path) { return path.filename().string().starts_with(child_file_front); }

std::vector<std::string> child_arguments(const PreparedPlan& prepared, const SupervisorOptions& options,
                                         const ChildFiles& files) {
  const ModelPlan& plan = prepared.plan;
  auto arguments = plan.server == ModelServer::molly_engine ? engine_arguments(prepared, options, files)
                                                            : llama_arguments(prepared, options, files);
  const std::uint32_t threads = plan.threads != 0 ? plan.threads : options.threads;
  if (threads != 0) arguments.insert(arguments.end(), {"--threads", std::to_string(threads)});
  if (!plan.projector.empty()) arguments.insert(arguments.end(), {"--mmproj", plan.projector.string()});
  arguments.insert(arguments.end(), plan.further_arguments.begin(), plan.further_arguments.end());
  return arguments;
}

std::vector<std::string> child_environment() {
  static constexpr std::string_view kept[] = {"PATH=",
                                              "HOME=",
                                              "LANG=",
                                              "LC_",
                                              "TMPDIR=",
                                              "LD_LIBRARY_PATH=",
                                              "XDG_CACHE_HOME=",
                                              "OMP_",
                                              "CUDA_",
                                              "NVIDIA_",
                                              "HIP_",
                                              "ROCR_",
                                              "HSA_",
                                              "GGML_",
                                              "VK_",
                                              "MESA_",
                                              "ONEAPI_",
                                              "ASAN_OPTIONS=",
                                              "TSAN_OPTIONS="};
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (std::ranges::any_of(kept, [&](std::string_view name) { return variable.starts_with(name); })) {
      result.emplace_back(variable);
    }
  }
  return result;
}

std::filesystem::path child_log(const std::filesystem::path& log_folder, std::string_view model) {
  std::string name = "model-";
  for (const char c : model) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    name.push_back(plain ? c : '_');
  }
  return log_folder / (name + ".log");
}

std::string plan_fingerprint(const PreparedPlan& prepared, const SupervisorOptions& options) {
  std::string text;
  for (const auto& argument : child_arguments(prepared, options, {})) text.append(argument).push_back('\0');
  std::error_code ignored;
  text += std::to_string(std::filesystem::file_size(prepared.plan.file, ignored));
  text += std::to_string(std::filesystem::last_write_time(prepared.plan.file, ignored).time_since_epoch().count());
  return std::to_string(digest(text));
}

std::string write_memo(const ChildMemo& memo) {
  std::string text;
  for (const std::string& line :
       {std::string(memo_head), memo.model, memo.files.socket.string(), memo.files.key.string(), memo.plan}) {
    text.append(line).push_back('\n');
  }
  return text;
}

std::optional<ChildMemo> read_memo(std::string_view blob) {
  std::vector<std::string> lines;
  while (!blob.empty()) {
    const std::size_t end = blob.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    lines.emplace_back(blob.substr(0, end));
    blob.remove_prefix(end + 1);
  }
  if (lines.size() != 5 || lines[0] != memo_head) return std::nullopt;
  return ChildMemo{.model = lines[1], .files = {.socket = lines[2], .key = lines[3]}, .plan = lines[4]};
}

base::Secret new_child_key() {
  std::string text = random_hex(32);
  return base::Secret::take(text);
}

}  // namespace molly::targets
