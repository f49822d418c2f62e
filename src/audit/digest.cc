#include "audit/digest.h"

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>

namespace molly::audit {
namespace {

// Fetching the algorithm and allocating a context cost more than hashing a record, so each thread keeps both.
struct Hasher {
  std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> algorithm{EVP_MD_fetch(nullptr, "SHA256", nullptr), EVP_MD_free};
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

}  // namespace

Digest sha256(std::string_view first, std::string_view second) {
  thread_local const Hasher hasher;
  Digest digest;
  EVP_MD_CTX* context = hasher.context.get();
  const bool done = context && EVP_DigestInit_ex2(context, hasher.algorithm.get(), nullptr) == 1 &&
                    EVP_DigestUpdate(context, first.data(), first.size()) == 1 &&
                    EVP_DigestUpdate(context, second.data(), second.size()) == 1 &&
                    EVP_DigestFinal_ex(context, digest.data(), nullptr) == 1;
  // Nothing can be authorised or recorded without hashes, and OpenSSL without SHA-256 is a broken installation.
  if (!done) throw std::runtime_error("OpenSSL cannot compute SHA-256.");
  return digest;
}

Digest sha256(std::string_view bytes) { return sha256(bytes, {}); }

}  // namespace molly::audit
