#include "http/deadline.h"

#include <boost/asio/execution_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace molly::http {

namespace asio = boost::asio;

// The armed deadlines of one io_context. A deadline that was armed since the last look gets its time at the
// next one, so that arming reads no clock; disarmed ones are unlinked when the sweep meets them.
class DeadlineSweep : public asio::execution_context::service {
 public:
  using key_type = DeadlineSweep;
  static inline asio::execution_context::id id;

  explicit DeadlineSweep(asio::execution_context& context)
      : asio::execution_context::service(context), timer_(static_cast<asio::io_context&>(context)) {}

  void link(Deadline& deadline) {
    deadline.linked_ = true;
    deadline.previous_ = nullptr;
    deadline.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &deadline;
    first_ = &deadline;
    if (!ticking_) tick();
  }

  void unlink(Deadline& deadline) {
    if (cursor_ == &deadline) cursor_ = deadline.next_;
    (deadline.previous_ != nullptr ? deadline.previous_->next_ : first_) = deadline.next_;
    if (deadline.next_ != nullptr) deadline.next_->previous_ = deadline.previous_;
    deadline.linked_ = false;
  }

 private:
  void shutdown() override {}

  void tick() {
    ticking_ = true;
    timer_.expires_after(Deadline::granularity);
    timer_.async_wait([this](const boost::system::error_code& error) {
      ticking_ = false;
      if (error) return;
      sweep(std::chrono::steady_clock::now());
      if (first_ != nullptr && !ticking_) tick();
    });
  }

  void sweep(std::chrono::steady_clock::time_point now) {
    for (Deadline* deadline = first_; deadline != nullptr; deadline = cursor_) {
      cursor_ = deadline->next_;
      look_at(*deadline, now);
    }
    cursor_ = nullptr;
  }

  void look_at(Deadline& deadline, std::chrono::steady_clock::time_point now) {
    if (!deadline.armed_) return unlink(deadline);
    if (deadline.fresh_) {
      deadline.fresh_ = false;
      deadline.when_ = now + deadline.after_;
      return;
    }
    if (now < deadline.when_) return;
    deadline.armed_ = false;
    unlink(deadline);
    const auto expired = deadline.expired_;  // the callback may destroy the deadline
    (*expired)();
  }

  asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>,
                             asio::io_context::executor_type>
      timer_;
  Deadline* first_ = nullptr;
  Deadline* cursor_ = nullptr;
  bool ticking_ = false;
};

Deadline::Deadline(asio::io_context& context, std::function<void()> expired)
    : sweep_(asio::use_service<DeadlineSweep>(context)),
      expired_(std::make_shared<std::function<void()>>(std::move(expired))) {}

Deadline::~Deadline() {
  if (linked_) sweep_.unlink(*this);
}

void Deadline::arm(std::chrono::milliseconds after) {
  after_ = after;
  fresh_ = true;
  armed_ = true;
  if (!linked_) sweep_.link(*this);
}

void Deadline::extend(std::chrono::milliseconds by) {
  after_ += by;
  if (!fresh_) when_ += by;
}

void Deadline::disarm() { armed_ = false; }

}  // namespace molly::http
