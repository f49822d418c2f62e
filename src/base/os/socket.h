#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/os/file_descriptor.h"
#include "core/error.h"

// Sockets that listen, and pairs between processes. None of this opens a connection: only `egress` does.
namespace molly::base {

// Listens on "127.0.0.1:7411", "[::1]:7411" (numeric addresses; port 0: the system's choice) or "unix:/path"
// (mode 0600; a stale socket file that nobody listens on is replaced, a live one is ErrorCode::conflict).
Result<FileDescriptor> listen_on(const std::string& address);

// The address that a listening socket is bound to, in the form that listen_on takes.
Result<std::string> bound_address(int socket);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t user = 0;
  gid_t group = 0;
};

// Who holds the other end of a unix socket.
Result<PeerCredentials> peer_credentials(int socket);

// Two connected SOCK_SEQPACKET ends: whole messages, in order, with end of file when the other end is gone.
// Both are non-blocking and close on exec.
Result<std::pair<FileDescriptor, FileDescriptor>> packet_pair();

enum class SendOutcome : std::uint8_t { sent, would_block, closed };

// Sends one message, with a descriptor when `descriptor` is not -1. Never blocks, never raises SIGPIPE.
SendOutcome send_packet(int socket, std::span<const std::uint8_t> message, int descriptor = -1);

inline constexpr std::size_t max_packet_bytes = 64 * 1024;

struct Packet {
  std::vector<std::uint8_t> message;
  FileDescriptor descriptor;  // none when the message came without one
};

enum class ReceiveOutcome : std::uint8_t { received, would_block, closed, oversized };

struct Received {
  ReceiveOutcome outcome = ReceiveOutcome::closed;
  Packet packet;
};

// Receives one message of at most max_packet_bytes. Never blocks.
Received receive_packet(int socket);

}  // namespace molly::base
