#pragma once

#include <openssl/ssl.h>

#include <optional>

#include "egress/endpoint.h"

namespace molly::egress {

// SHA-256 of the public key that the peer proved to hold in the handshake.
std::optional<Pin> peer_key(const SSL* session);

}  // namespace molly::egress
