#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/os/socket.h"

namespace molly::http {

using namespace std::chrono_literals;

// Nothing in these tests should take that long; where it does, the test fails instead of hanging.
inline constexpr auto patience = 20s;

// One end of a connection that sends exactly what a test says. Blocking, with patience.
class RawPeer {
 public:
  explicit RawPeer(int descriptor) : descriptor_(descriptor) {}
  RawPeer(RawPeer&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), received_(std::move(other.received_)) {}
  RawPeer& operator=(RawPeer&&) = delete;
  ~RawPeer() { close(); }

  static RawPeer to_port(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return RawPeer(descriptor);
  }

  static RawPeer to_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return RawPeer(descriptor);
  }

  // False where the other end no longer takes bytes.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto size = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }

  // Everything up to and with `end`, or what came until the other end closed.
  std::string read_until(std::string_view end) {
    for (;;) {
      if (const auto at = received_.find(end); at != std::string::npos) return take(at + end.size());
      if (!receive()) return take(received_.size());
    }
  }

  std::string read_bytes(std::size_t size) {
    while (received_.size() < size && receive()) {
    }
    return take(std::min(size, received_.size()));
  }

  std::string read_to_end() {
    while (receive()) {
    }
    return take(received_.size());
  }

  // One response with a Content-Length.
  std::string read_response() {
    std::string head = read_until("\r\n\r\n");
    const auto at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    return head + read_bytes(std::stoul(head.substr(at + 16)));
  }

  bool was_reset() const { return reset_; }
  void end_writing() { ::shutdown(descriptor_, SHUT_WR); }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  void reset() {
    const linger now{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  int descriptor() const { return descriptor_; }

 private:
  bool receive() {
    pollfd waiting{descriptor_, POLLIN, 0};
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    if (::poll(&waiting, 1, static_cast<int>(limit.count())) <= 0) {
      ADD_FAILURE() << "the other end said nothing";
      return false;
    }
    char bytes[16 << 10];
    const auto size = ::recv(descriptor_, bytes, sizeof bytes, 0);
    if (size < 0 && errno == ECONNRESET) reset_ = true;
    if (size <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }

  std::string take(std::size_t size) {
    std::string front = received_.substr(0, size);
    received_.erase(0, size);
    return front;
  }

  int descriptor_;
  std::string received_;
  bool reset_ = false;
};

inline std::uint16_t port_of(int listening) {
  const auto address = base::bound_address(listening);
  return static_cast<std::uint16_t>(std::stoul(address->substr(address->rfind(':') + 1)));
}

}  // namespace molly::http
