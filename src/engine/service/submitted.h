#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/service/engine.h"
#include "engine/service/mailbox.h"

namespace molly::engine {

// The generations of one HTTP request. Destroyed early, because the client left or one of them failed, it cancels
// those that still run.
class Submitted {
 public:
  Submitted(Engine& engine, const boost::asio::any_io_executor& executor)
      : engine_(engine), mailbox_(std::make_shared<Mailbox>(executor)) {}
  ~Submitted() {
    mailbox_->close();
    for (const auto& id : running_) {
      if (id) engine_.cancel(*id);
    }
  }
  Submitted(const Submitted&) = delete;
  Submitted& operator=(const Submitted&) = delete;

  // For a request that is to be added: what it says comes out of receive() as that choice's.
  std::shared_ptr<TokenSink> sink(std::size_t choice, const std::shared_ptr<const AnswerForm>& form,
                                  std::vector<std::string> stops) const {
    return std::make_shared<ChoiceSink>(choice, engine_.vocabulary(), form, std::move(stops), mailbox_);
  }
  void add(GenerationRequest request) { running_.emplace_back(engine_.submit(std::move(request))); }
  boost::asio::awaitable<std::vector<Addressed>> receive();

 private:
  Engine& engine_;
  std::shared_ptr<Mailbox> mailbox_;
  std::vector<std::optional<GenerationId>> running_;  // by choice; nothing once it ended
};

}  // namespace molly::engine
