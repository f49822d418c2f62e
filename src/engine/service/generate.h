#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/request.h"
#include "engine/service/answer_plan.h"
#include "engine/service/engine.h"
#include "engine/service/mailbox.h"
#include "engine/service/parameters.h"
#include "engine/service/submitted.h"

namespace molly::engine {

struct Prompts {
  std::vector<std::vector<Token>> tokens;  // as they would be computed
  std::string chat;                        // the text of a chat's only prompt
};

// invalid_request, unsupported_parameter.
Result<Prompts> read_prompts(const Engine& engine, const Request& request, const Parameters& parameters);
Result<std::string> render_chat(const Engine& engine, const Request& request, const Parameters& parameters);

// One request of the API under way: all its choices, as typed events. Destroying it early cancels them.
class Generation {
 public:
  // Checks, renders, tokenizes and submits. Errors as the API reports them.
  static Result<std::unique_ptr<Generation>> begin(Engine& engine, const Request& request,
                                                   const boost::asio::any_io_executor& executor);
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // The next events, at least one; Done or Failed is the last. Choices are interleaved as their tokens come.
  boost::asio::awaitable<std::vector<Event>> next();

 private:
  struct Running {
    bool begun = false;
    bool has_called = false;
    std::size_t text_bytes = 0;  // sent so far, for text_offset
    std::vector<Choice> chosen;  // whole answers whose confidence is asked for only
  };

  Generation(Engine& engine, Endpoint endpoint, Parameters parameters, AnswerPlan plan,
             const boost::asio::any_io_executor& executor);
  Result<void> submit(const Request& request, std::span<const std::vector<Token>> prompts);
  Result<GenerationRequest> choice_of(const Request& request, const std::vector<Token>& prompt, std::uint32_t choice,
                                      std::size_t index) const;
  ChoiceDelta delta_of(std::size_t choice, Piece piece);
  void add_end(std::size_t choice, const Ended& ended, std::vector<Event>& events);
  void add_events(Addressed addressed, std::vector<Event>& events);

  Engine& engine_;
  Endpoint endpoint_;
  Parameters parameters_;
  AnswerPlan plan_;
  Submitted submitted_;
  std::vector<Running> running_;
  Usage usage_;
  GenerationTimings timings_;  // of the last choice that ended
  std::size_t ended_ = 0;
  bool is_whole_ = false;  // not a stream: what describes an answer is told once
  bool started_ = false;
};

}  // namespace molly::engine
