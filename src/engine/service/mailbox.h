#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/schedule/generation.h"
#include "engine/service/answer_stream.h"
#include "engine/text/token_text.h"

namespace molly::engine {

// What of one or more tokens may be sent now, with what is known of each.
struct Piece {
  AnswerDelta delta;
  std::vector<Choice> tokens;
};

struct Ended {
  FinishReason reason = FinishReason::stop;
  GenerationTimings timings;
  std::uint32_t tokens = 0;  // generated, end token not counted
};

struct PromptScores {
  std::vector<TokenLogprob> logprobs;
};

struct Embedding {
  std::vector<float> numbers;
};

using Letter = std::variant<Piece, PromptScores, Embedding, Ended, Error>;

struct Addressed {
  std::size_t choice = 0;
  Letter letter;
};

// From the engine's thread to the coroutine of one HTTP request, for all its choices. What it holds is bounded by their
// max_tokens.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(const boost::asio::any_io_executor& executor);

  void put(std::size_t choice, Letter letter);  // any thread
  // Nobody receives any more: what still comes is dropped, and the executor is not used again. On the executor's
  // thread; the engine may hold the mailbox longer than the executor lives.
  void close();
  // The next letters, at least one; on the executor's thread. Ended or Error is the last of each choice.
  boost::asio::awaitable<std::vector<Addressed>> receive();

 private:
  std::mutex mutex_;
  std::vector<Addressed> letters_;
  std::optional<boost::asio::steady_timer> arrival_;  // nothing once closed
};

// Turns one choice's tokens into letters.
class ChoiceSink : public TokenSink {
 public:
  // `vocabulary` must outlive the sink.
  ChoiceSink(std::size_t choice, const Vocabulary& vocabulary, const std::shared_ptr<const AnswerForm>& form,
             std::vector<std::string> stops, std::shared_ptr<Mailbox> mailbox);

  Reaction on_token(const Choice& choice) override;
  void on_prompt_logprobs(std::span<const TokenLogprob> logprobs) override;
  void on_embedding(std::span<const float> embedding) override;
  void on_end(FinishReason reason, const GenerationTimings& timings) override;
  void on_error(Error error, const GenerationTimings& timings) override;

 private:
  std::size_t choice_;
  TokenText text_;
  AnswerStream answer_;
  std::vector<Choice> unsent_;  // tokens whose text is held back
  std::uint32_t tokens_ = 0;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace molly::engine
