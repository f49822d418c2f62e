#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string>

namespace molly::http {

struct TestCertificate {
  std::string certificate;              // PEM
  std::string key;                      // PEM
  std::array<unsigned char, 32> pin{};  // SHA-256 of the public key
};

inline std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(memory);
  return text;
}

// A self-signed certificate for `names`, e.g. "DNS:localhost,IP:127.0.0.1".
inline TestCertificate make_certificate(const char* names = "DNS:localhost,IP:127.0.0.1") {
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(EVP_EC_gen("P-256"), ::EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(X509_new(), ::X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_NAME_new();
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_subject_name(certificate.get(), subject);
  X509_set_issuer_name(certificate.get(), subject);
  X509_NAME_free(subject);
  for (const auto& [kind, value] :
       {std::pair(NID_subject_alt_name, names), {NID_basic_constraints, "critical,CA:TRUE"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(certificate.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  TestCertificate made;
  BIO* certificate_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate.get());
  made.certificate = text_of(certificate_text);
  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_text, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  made.key = text_of(key_text);
  unsigned char* encoded = nullptr;
  const int size = i2d_PUBKEY(key.get(), &encoded);
  EVP_Digest(encoded, static_cast<std::size_t>(size), made.pin.data(), nullptr, EVP_sha256(), nullptr);
  OPENSSL_free(encoded);
  return made;
}

}  // namespace molly::http
