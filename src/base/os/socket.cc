#include "base/os/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <variant>

#include "base/os/system_error.h"

namespace molly::base {
namespace {

constexpr int waiting_connections = 1024;
constexpr std::string_view unix_scheme = "unix:";

using NetworkAddress = std::variant<sockaddr_in, sockaddr_in6>;

std::optional<NetworkAddress> parse_network_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  std::string host(text.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    host = host.substr(1, host.size() - 2);
    if (::inet_pton(AF_INET6, host.c_str(), &address.sin6_addr) != 1) return std::nullopt;
    return address;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return std::nullopt;
  return address;
}

Result<FileDescriptor> listen_network(const std::string& text) {
  const auto address = parse_network_address(text);
  if (!address) {
    return failure(ErrorCode::invalid_request, "\"" + text +
                                                   "\" is no address to listen on: write 127.0.0.1:7411, "
                                                   "[::1]:7411 or unix:/path");
  }
  const bool six = std::holds_alternative<sockaddr_in6>(*address);
  FileDescriptor made(::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return system_failure("make a socket for " + text);
  const int yes = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (six) ::setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  const int bound = std::visit(
      [&](const auto& value) { return ::bind(made.get(), reinterpret_cast<const sockaddr*>(&value), sizeof value); },
      *address);
  if (bound != 0 || ::listen(made.get(), waiting_connections) != 0) return system_failure("listen on " + text);
  return made;
}

// Whether a process holds the lock that every listener of ours keeps beside its socket: asking by connecting
// would need a call that only one folder may make. The kernel drops the lock with the socket's process.
Result<FileDescriptor> lock_socket(const std::string& path) {
  FileDescriptor lock(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return system_failure("open " + path + ".lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return failure(ErrorCode::conflict, "another process listens on " + path);
  }
  return lock;
}

// Binds under a name nobody knows, narrows the mode, and only then gives it its real name: at no moment could
// another user connect, and a stale file is replaced in the same step.
Result<FileDescriptor> listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string fresh = path + ".new";
  if (path.empty() || fresh.size() >= sizeof address.sun_path) {
    return failure(ErrorCode::invalid_request, "the socket path \"" + path + "\" is longer than the system allows (" +
                                                   std::to_string(sizeof address.sun_path - 5) + " bytes)");
  }
  auto lock = lock_socket(path);
  if (!lock) return std::unexpected(lock.error());
  fresh.copy(address.sun_path, fresh.size());
  ::unlink(fresh.c_str());
  FileDescriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made || ::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(fresh.c_str(), 0600) != 0 || ::listen(made.get(), waiting_connections) != 0 ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_failure("listen on " + path);
  }
  lock->release();  // held as long as this process lives
  return made;
}

std::string network_text(const sockaddr_storage& storage) {
  char host[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
    ::inet_ntop(AF_INET6, &address.sin6_addr, host, sizeof host);
    return "[" + std::string(host) + "]:" + std::to_string(ntohs(address.sin6_port));
  }
  const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
  ::inet_ntop(AF_INET, &address.sin_addr, host, sizeof host);
  return std::string(host) + ":" + std::to_string(ntohs(address.sin_port));
}

FileDescriptor passed_descriptor(msghdr& header) {
  FileDescriptor result;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
      result = FileDescriptor(number);  // a message carries one; any more are closed here
    }
  }
  return result;
}

}  // namespace

Result<FileDescriptor> listen_on(const std::string& address) {
  if (address.starts_with(unix_scheme)) return listen_unix(address.substr(unix_scheme.size()));
  return listen_network(address);
}

Result<std::string> bound_address(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return system_failure("read a socket's address");
  }
  if (storage.ss_family != AF_UNIX) return network_text(storage);
  std::string path = reinterpret_cast<const sockaddr_un&>(storage).sun_path;
  if (path.ends_with(".new")) path.resize(path.size() - 4);  // see listen_unix
  return std::string(unix_scheme) + path;
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return system_failure("ask who holds the other end of a socket");
  }
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<std::pair<FileDescriptor, FileDescriptor>> packet_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return system_failure("make a pair of sockets");
  }
  return std::pair(FileDescriptor(ends[0]), FileDescriptor(ends[1]));
}

SendOutcome send_packet(int socket, std::span<const std::uint8_t> message, int descriptor) {
  iovec part{const_cast<std::uint8_t*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent >= 0) return SendOutcome::sent;
  return errno == EAGAIN || errno == EWOULDBLOCK ? SendOutcome::would_block : SendOutcome::closed;
}

Received receive_packet(int socket) {
  Received result;
  result.packet.message.resize(max_packet_bytes);
  iovec part{result.packet.message.data(), result.packet.message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t count = 0;
  do count = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK;
    result.outcome = later ? ReceiveOutcome::would_block : ReceiveOutcome::closed;
    return result;
  }
  result.packet.descriptor = passed_descriptor(header);
  if (count == 0) return result;  // no message is empty, so this is the end of file
  result.packet.message.resize(static_cast<std::size_t>(count));
  result.outcome = (header.msg_flags & MSG_TRUNC) != 0 ? ReceiveOutcome::oversized : ReceiveOutcome::received;
  return result;
}

}  // namespace molly::base
