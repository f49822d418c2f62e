#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "egress/door.h"
#include "policy/permit.h"
#include "targets/failure.h"
#include "wire/openai.h"
#include "wire/sse.h"

namespace molly::targets {

// What a target is asked for, beside the body.
struct Question {
  // Longest time without an event, however many comments keep the connection alive: for the first, and between two.
  std::chrono::milliseconds first_event{120'000};
  std::chrono::milliseconds next_event{60'000};
  Endpoint endpoint = Endpoint::chat;
  bool stream = false;
  std::uint32_t choices = 1;         // that a stream must finish: n for each prompt
  std::string clearance;             // value of x-molly-clearance for another Molly; empty: not sent
  std::size_t max_bytes = 64 << 20;  // of a whole answer
};

// One target's answer, read as typed events. Destroying it frees the upstream within one token: an answer
// that was not read to its end closes its connection.
class Answer {
 public:
  Answer(egress::Upstream upstream, Question question);

  // The next events, at least one; the last batch ends with Done or Failed, and nothing may be asked after it.
  // The events live until the next call and may be moved from. A failure here means that the target broke
  // off: its kind says how. Failed events are the target's own error reports.
  boost::asio::awaitable<Attempt<std::span<Event>>> next();

  // Which target finally answered, where the peer is another Molly (its x-molly-route); else empty.
  std::string remote_route() const;
  // Names of parameters that the peer dropped (its x-molly-dropped); else empty.
  std::string remote_dropped() const;

  // Cuts the connection: a next() that waits fails. On the same thread.
  void abort() { upstream_.abort(); }

  // After the last event: reads what little follows it, so that the connection can be used again.
  boost::asio::awaitable<void> drain();

 private:
  boost::asio::awaitable<Attempt<std::span<Event>>> read_whole();
  boost::asio::awaitable<Attempt<std::span<Event>>> read_stream();
  Attempt<void> parse_available();
  Attempt<std::span<Event>> end_of_stream();

  egress::Upstream upstream_;
  Question question_;
  bool streamed_;
  wire::SseParser sse_;
  wire::ChunkParser chunks_;
  std::vector<Event> events_;
  std::optional<Failure> broken_;  // came behind events of the same read, and is due after them
  std::chrono::steady_clock::time_point silent_until_;
};

// How many tokens the target counts in the prompt; nothing where it does not know how to count after all.
boost::asio::awaitable<Attempt<std::optional<std::uint64_t>>> count_tokens(egress::Door& door,
                                                                           const egress::Endpoint& endpoint,
                                                                           policy::AnyDispatch dispatch,
                                                                           std::string_view path);

// Sends the dispatch and waits for the response's head. Errors of the target (429, 5xx, ...) are failures.
boost::asio::awaitable<Attempt<std::unique_ptr<Answer>>> ask(egress::Door& door, const egress::Endpoint& endpoint,
                                                             policy::AnyDispatch dispatch, Question question);

}  // namespace molly::targets
