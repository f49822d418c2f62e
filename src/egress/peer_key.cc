#include "egress/peer_key.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace molly::egress {

std::optional<Pin> peer_key(const SSL* session) {
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(::SSL_get1_peer_certificate(session), ::X509_free);
  if (!certificate) return std::nullopt;
  unsigned char* encoded = nullptr;
  const int size = ::i2d_X509_PUBKEY(::X509_get_X509_PUBKEY(certificate.get()), &encoded);
  if (size <= 0) return std::nullopt;
  Pin pin{};
  unsigned int length = 0;
  const int hashed =
      ::EVP_Digest(encoded, static_cast<std::size_t>(size), pin.data(), &length, ::EVP_sha256(), nullptr);
  ::OPENSSL_free(encoded);
  if (hashed != 1 || length != pin.size()) return std::nullopt;
  return pin;
}

}  // namespace molly::egress
