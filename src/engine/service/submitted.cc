#include "engine/service/submitted.h"

namespace molly::engine {

boost::asio::awaitable<std::vector<Addressed>> Submitted::receive() {
  auto letters = co_await mailbox_->receive();
  for (const auto& [choice, letter] : letters) {
    if (std::holds_alternative<Ended>(letter) || std::holds_alternative<Error>(letter)) running_[choice].reset();
  }
  co_return letters;
}

}  // namespace molly::engine
