#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"

struct evp_md_ctx_st;  // OpenSSL's

namespace molly::training {

// SHA-256 over what is added, piece by piece.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // To be called once.
  std::array<std::uint8_t, 32> digest();
  // The same in lower-case hexadecimal; to be called once.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::string_view bytes);

// Blocks on the disk. io_failed.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace molly::training
