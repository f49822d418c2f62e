#include "engine/service/mailbox.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace molly::engine {

namespace asio = boost::asio;

Mailbox::Mailbox(const asio::any_io_executor& executor) {
  arrival_.emplace(executor);
  arrival_->expires_at(std::chrono::steady_clock::time_point::max());
}

void Mailbox::put(std::size_t choice, Letter letter) {
  const std::lock_guard lock(mutex_);
  if (!arrival_) return;
  letters_.push_back({choice, std::move(letter)});
  if (letters_.size() > 1) return;  // a wake is under way
  asio::post(arrival_->get_executor(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->arrival_) self->arrival_->cancel();
  });
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  arrival_.reset();
  letters_.clear();
}

asio::awaitable<std::vector<Addressed>> Mailbox::receive() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (!letters_.empty()) co_return std::exchange(letters_, {});
    }
    // put() cancels the wait, and cannot do so between the look above and here: both run on one thread.
    boost::system::error_code woken;
    co_await arrival_->async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

ChoiceSink::ChoiceSink(std::size_t choice, const Vocabulary& vocabulary, const std::shared_ptr<const AnswerForm>& form,
                       std::vector<std::string> stops, std::shared_ptr<Mailbox> mailbox)
    : choice_(choice), text_(vocabulary, *form), answer_(form, std::move(stops)), mailbox_(std::move(mailbox)) {}

TokenSink::Reaction ChoiceSink::on_token(const Choice& choice) {
  AnswerDelta delta;
  if (!choice.end_of_generation) {
    ++tokens_;
    delta = answer_.append(text_(choice.token));
    unsent_.push_back(choice);
  }
  if (!delta.is_empty()) mailbox_->put(choice_, Piece{std::move(delta), std::exchange(unsent_, {})});
  return answer_.stopped() ? Reaction::stop : Reaction::go_on;
}

void ChoiceSink::on_prompt_logprobs(std::span<const TokenLogprob> logprobs) {
  mailbox_->put(choice_, PromptScores{{logprobs.begin(), logprobs.end()}});
}

void ChoiceSink::on_embedding(std::span<const float> embedding) {
  mailbox_->put(choice_, Embedding{{embedding.begin(), embedding.end()}});
}

void ChoiceSink::on_end(FinishReason reason, const GenerationTimings& timings) {
  AnswerDelta rest = answer_.finish();
  if (!rest.is_empty()) mailbox_->put(choice_, Piece{std::move(rest), std::exchange(unsent_, {})});
  mailbox_->put(choice_, Ended{reason, timings, tokens_});
}

void ChoiceSink::on_error(Error error, const GenerationTimings&) { mailbox_->put(choice_, std::move(error)); }

}  // namespace molly::engine
