#pragma once

#include <memory>

#include "core/error.h"
#include "http/server.h"
#include "http/stream.h"
#include "server/endpoints.h"
#include "server/settings.h"

namespace molly::apps {

// What the listeners and their endpoints take from the configuration.
http::ServerLimits limits_of(const server::ServerSettings& settings);
server::Endpoints::Limits endpoint_limits_of(const server::ServerSettings& settings);
// The certificate and key that the settings name. Blocks on the disk. io_failed, invalid_request.
Result<std::shared_ptr<http::TlsContext>> load_tls(const server::ServerSettings& settings);

}  // namespace molly::apps
