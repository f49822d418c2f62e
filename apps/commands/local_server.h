#pragma once

#include <string>

#include "commands/command.h"
#include "egress/local.h"

namespace molly::apps {

// The server of this data folder, reached over its unix socket as its owner.
class LocalServer {
 public:
  // Touches nothing: whether a server answers shows at the first call.
  static Result<LocalServer> of(const Globals& globals);

  // The body of a 2xx answer; an error answer's own message as an error otherwise. `unavailable` with advice
  // where no server answers.
  Result<egress::LocalAnswer> get(const std::string& path) const;
  Result<egress::LocalAnswer> post(const std::string& path, std::string body) const;
  // The body piece by piece, as `on_body` gets it; it returns false to stop.
  Result<egress::LocalAnswer> stream(const std::string& path, std::string body,
                                     const std::function<bool(std::string_view)>& on_body) const;

  const std::string& socket() const { return socket_; }

 private:
  explicit LocalServer(std::string socket) : socket_(std::move(socket)) {}
  Result<egress::LocalAnswer> ask(const egress::LocalRequest& request, const egress::OnBody& on_body) const;

  std::string socket_;
};

// Has a running server look again at what a command changed behind its back: "reload" or "keys". One that
// does not run reads it when it starts.
void tell_server(const Globals& globals, const std::string& what);

}  // namespace molly::apps
