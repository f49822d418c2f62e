#include "training/digest.h"

#include <openssl/evp.h>

#include <format>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "base/os/system_error.h"

namespace molly::training {
namespace {

// OpenSSL without SHA-256 is a broken installation.
void require(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL cannot compute SHA-256.");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ ? EVP_DigestInit_ex2(context_.get(), EVP_sha256(), nullptr) : 0);
}

void Sha256::add(std::string_view bytes) { require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())); }

std::array<std::uint8_t, 32> Sha256::digest() {
  std::array<std::uint8_t, 32> out;
  require(EVP_DigestFinal_ex(context_.get(), out.data(), nullptr));
  return out;
}

std::string Sha256::hex() {
  std::string out;
  for (const std::uint8_t byte : digest()) out += std::format("{:02x}", byte);
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::system_failure("open " + path.string());
  Sha256 hash;
  std::vector<char> piece(std::size_t{1} << 20);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.add({piece.data(), static_cast<std::size_t>(in.gcount())});
  }
  if (in.bad()) return base::system_failure("read " + path.string());
  return hash.hex();
}

}  // namespace molly::training
