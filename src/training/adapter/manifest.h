#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "engine/adapters/lora_file.h"

namespace molly::training {

struct LossPoint {
  std::uint64_t step = 0;
  double loss = 0;  // nats for each token that counts
  bool operator==(const LossPoint&) const = default;
};

struct LossCurves {
  std::vector<LossPoint> train;
  std::vector<LossPoint> held_out;
  bool operator==(const LossCurves&) const = default;
};

// Which base exactly: adapters belong to one file.
struct BaseIdentity {
  std::string sha256;        // of the file
  std::string quantization;  // "Q8_0"
  std::string architecture;
  std::string name;
  bool operator==(const BaseIdentity&) const = default;
};

// Beside every adapter: what it was made for, from and how.
struct Manifest {
  BaseIdentity base;
  std::string adapter_sha256;
  std::uint32_t rank = 0;
  double alpha = 0;
  std::vector<std::string> targets;
  std::string data_digest;
  std::string data_label;
  std::string settings;  // the job as JSON; empty: none, as for imported adapters
  LossCurves curves;
  std::string trainer;  // "molly-engine 0.1.0"
  bool operator==(const Manifest&) const = default;
};

std::string manifest_json(const Manifest& manifest);
// invalid_request names the member.
Result<Manifest> parse_manifest(std::string_view json);

// "adapter.gguf" has "adapter.manifest.json" beside it.
std::filesystem::path manifest_path(const std::filesystem::path& adapter);

// Both block on the disk.
Result<void> write_manifest(const std::filesystem::path& adapter, const Manifest& manifest);
Result<Manifest> read_manifest(const std::filesystem::path& adapter);

// What a model file is; reads all of it. Blocks on the disk.
Result<BaseIdentity> identify_base(const std::filesystem::path& model);
// What adapters of a model file must look like; reads its header only.
Result<engine::BaseShape> read_base_shape(const std::filesystem::path& model);

// conflict: the adapter is for another base. The sentence names both.
Result<void> check_base(const Manifest& manifest, const BaseIdentity& base);
// conflict: the adapter's file is not the one that the manifest was written for. Blocks on the disk.
Result<void> check_adapter(const Manifest& manifest, const std::filesystem::path& adapter);

}  // namespace molly::training
