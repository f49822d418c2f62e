#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "egress/endpoint.h"
#include "egress/proof.h"
#include "http/client.h"
#include "http/failure.h"
#include "policy/payload.h"
#include "policy/permit.h"

namespace molly::egress {

// A request's head beside what the door adds: Host, Authorization, Content-Length, User-Agent.
struct Outbound {
  std::string_view method = "POST";
  std::string_view path;  // behind the endpoint's base path, e.g. "/chat/completions"
  std::string_view content_type = "application/json";
  std::string_view accept = "application/json";
  std::vector<http::Header> headers;  // further ones; views live as long as the call
};

// The response of a target, read piece by piece. Destroying it before its end closes the connection, which
// stops the upstream's work; read to its end, the connection goes back to the pool.
class Upstream {
 public:
  Upstream(Upstream&&) noexcept;
  Upstream& operator=(Upstream&&) noexcept;
  ~Upstream();

  unsigned status() const;
  const http::HeaderList& headers() const;
  // Closes the connection: a read that waits fails, as do all later ones.
  void abort();
  // Some bytes of the body; empty at its end; valid until the next call.
  boost::asio::awaitable<http::Attempt<std::string_view>> read_some();
  // The rest of the body; garbage when it is longer than `limit` bytes.
  boost::asio::awaitable<http::Attempt<std::string>> read_all(std::size_t limit);

 private:
  friend class Door;
  struct State;
  explicit Upstream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct DoorOptions {
  PlainLoopback plain = PlainLoopback::refused;
  http::ClientLimits limits;
  // Authorities for T3 in PEM, beside the system's; for tests.
  std::string further_authorities;
  // How long an unused connection is kept.
  std::chrono::milliseconds keep_idle{60'000};
};

struct ProbeAnswer {
  unsigned status = 0;
  std::string body;  // at most 64 KiB
};

// The only way out: of one network thread, on its io_context, with a pool of connections for each target.
// Redirects are failures (garbage), proxy variables are ignored. A request is repeated only where a kept
// connection turned out to be dead and not one byte of a response had come.
class Door {
 public:
  explicit Door(boost::asio::io_context& context, DoorOptions options = {});
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Spends the permit on exactly these bytes and this target, then sends them and waits for the response's
  // head. `endpoint` and the views in `request` must live until the result is there.
  template <Tier tier>
  boost::asio::awaitable<http::Attempt<Upstream>> send(const Endpoint& endpoint, policy::Permit<tier> permit,
                                                       policy::Payload<policy::Wire<tier>> payload, Outbound request) {
    if (auto spent = spend(endpoint, tier, permit, payload.digest()); !spent) co_return std::unexpected(spent.error());
    co_return co_await exchange(endpoint, request, payload.bytes());
  }
  boost::asio::awaitable<http::Attempt<Upstream>> send(const Endpoint& endpoint, policy::AnyDispatch dispatch,
                                                       Outbound request);

  // GET of a path at a T0 or T1 target, e.g. "/health" (not below the base path). Needs no permit, because it
  // carries nothing of anyone: the bytes are fixed by the configuration. Other tiers are refused.
  boost::asio::awaitable<http::Attempt<ProbeAnswer>> probe(const Endpoint& endpoint, std::string_view path);

  // Closes idle connections of targets that are no longer configured, or of all (empty name).
  void forget(std::string_view target = {});
  std::size_t idle_connections() const;
  std::size_t open_connections() const;

 private:
  friend class Upstream;
  struct State;

  template <Tier tier>
  static http::Attempt<void> spend(const Endpoint& endpoint, Tier wanted, policy::Permit<tier>& permit,
                                   const Digest& digest) {
    if (endpoint.tier != wanted) return http::failed(http::FailureKind::not_permitted);
    if (auto spent = permit.spend(endpoint.target, digest); !spent) {
      return http::failed(http::FailureKind::not_permitted, std::move(spent.error().message));
    }
    return {};
  }
  boost::asio::awaitable<http::Attempt<Upstream>> exchange(const Endpoint& endpoint, const Outbound& request,
                                                           std::string_view body);

  std::shared_ptr<State> state_;
};

}  // namespace molly::egress
