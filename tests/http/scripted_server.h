#pragma once

#include <functional>
#include <thread>

#include "raw_peer.h"

namespace molly::http {

// Plays one script for each connection that comes, one after the other.
class ScriptedServer {
 public:
  using Script = std::function<void(RawPeer&)>;

  explicit ScriptedServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
    listening_ = std::move(*base::listen_on("127.0.0.1:0"));
    port_ = port_of(listening_.get());
    thread_ = std::thread([this] { play(); });
  }
  ~ScriptedServer() { thread_.join(); }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  void play() {
    for (const Script& script : scripts_) {
      pollfd waiting{listening_.get(), POLLIN, 0};
      const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
      if (::poll(&waiting, 1, static_cast<int>(limit.count())) <= 0) {
        ADD_FAILURE() << "a connection that the script expects did not come";
        return;
      }
      RawPeer peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ::fcntl(peer.descriptor(), F_SETFL, 0);
      script(peer);
    }
  }

  std::vector<Script> scripts_;
  base::FileDescriptor listening_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

// Reads one request's head and then says `answer`; the connection closes behind it.
inline ScriptedServer::Script answers(std::string answer) {
  return [answer = std::move(answer)](RawPeer& peer) {
    peer.read_until("\r\n\r\n");
    peer.send(answer);
  };
}

}  // namespace molly::http
