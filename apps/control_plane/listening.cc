#include "control_plane/listening.h"

#include "base/os/file.h"

namespace molly::apps {

http::ServerLimits limits_of(const server::ServerSettings& settings) {
  return {.max_header_bytes = settings.max_header_bytes,
          .max_body_bytes = settings.max_body_bytes,
          .max_connections = settings.max_connections,
          .header_timeout = settings.header_deadline,
          .body_timeout = settings.body_deadline,
          .idle_timeout = settings.idle_deadline,
          .write_timeout = settings.write_deadline};
}

server::Endpoints::Limits endpoint_limits_of(const server::ServerSettings& settings) {
  return {.access = {settings.allowed_hosts, settings.allowed_origins}, .max_in_flight = settings.max_in_flight};
}

Result<std::shared_ptr<http::TlsContext>> load_tls(const server::ServerSettings& settings) {
  constexpr std::uint64_t max_pem_bytes = 1 << 20;
  const auto certificate = base::read_file(settings.tls_certificate, max_pem_bytes);
  if (!certificate) return std::unexpected(certificate.error());
  const auto key = base::read_file(settings.tls_key, max_pem_bytes);
  if (!key) return std::unexpected(key.error());
  return http::server_tls(*certificate, *key);
}

}  // namespace molly::apps
