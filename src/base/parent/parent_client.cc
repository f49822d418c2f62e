#include "base/parent/parent_client.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>

#include "base/os/socket.h"
#include "base/parent/protocol.h"

namespace molly::base {
namespace asio = boost::asio;
namespace {

constexpr std::chrono::seconds answer_deadline{5};
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

// One call that waits for its answer.
struct Waiting {
  explicit Waiting(const asio::any_io_executor& executor) : timer(executor, answer_deadline) {}
  asio::steady_timer timer;
  std::vector<Child> children;  // parts of a list
  std::optional<Message> answer;
  FileDescriptor descriptor;
  bool cancelled = false;
};

Error error_of(const Message& failed) {
  return Error{failed.number == 1 ? ErrorCode::conflict : ErrorCode::io_failed, failed.text, {}};
}

}  // namespace

struct ParentClient::State : std::enable_shared_from_this<ParentClient::State> {
  State(asio::any_io_executor executor_, FileDescriptor socket_)
      : executor(std::move(executor_)), socket(std::move(socket_)), readiness(executor, socket.get()) {}
  ~State() { readiness.release(); }  // the number stays ours: `socket` closes it

  asio::awaitable<void> receive();
  void take(Packet packet);
  void lose();
  asio::awaitable<Result<std::shared_ptr<Waiting>>> call(Message message);
  bool post(std::vector<std::uint8_t> message);
  bool flush();
  asio::awaitable<void> flush_later();

  asio::any_io_executor executor;
  FileDescriptor socket;
  asio::posix::stream_descriptor readiness;
  std::map<std::uint32_t, std::shared_ptr<Waiting>> waiting;
  std::deque<std::vector<std::uint8_t>> unsent;
  bool flushing = false;
  bool lost = false;
  bool stopped = false;
  std::uint32_t last_sequence = 0;
  std::function<void(ChildExit)> exit_callback;
  std::function<void()> lost_callback;
};

asio::awaitable<void> ParentClient::State::receive() {
  const auto self = shared_from_this();
  while (!stopped && !lost) {
    Received received = receive_packet(socket.get());
    if (received.outcome == ReceiveOutcome::received) {
      take(std::move(received.packet));
    } else if (received.outcome == ReceiveOutcome::would_block) {
      co_await readiness.async_wait(asio::posix::descriptor_base::wait_read, as_result);
    } else {
      lose();
    }
  }
}

void ParentClient::State::take(Packet packet) {
  auto message = decode(packet.message);
  if (!message) return;
  if (message->kind == MessageKind::exited) {
    if (exit_callback) exit_callback({.id = message->id, .status = message->number});
    return;
  }
  const auto found = waiting.find(message->sequence);
  if (found == waiting.end()) return;  // its caller gave up
  Waiting& call = *found->second;
  if (message->kind == MessageKind::child) {
    call.children.push_back({message->id, message->number, std::move(message->blob)});
    return;
  }
  call.answer = std::move(*message);
  call.descriptor = std::move(packet.descriptor);
  call.timer.cancel();
}

void ParentClient::State::lose() {
  lost = true;
  for (auto& [sequence, call] : waiting) call->timer.cancel();
  if (lost_callback) lost_callback();
}

bool ParentClient::State::post(std::vector<std::uint8_t> message) {
  if (lost || stopped) return false;
  unsent.push_back(std::move(message));
  if (flush() && !flushing) {
    flushing = true;
    asio::co_spawn(executor, flush_later(), asio::detached);
  }
  return true;
}

// True when something is left that the socket does not take now.
bool ParentClient::State::flush() {
  while (!unsent.empty()) {
    if (send_packet(socket.get(), unsent.front()) == SendOutcome::would_block) return true;
    unsent.pop_front();
  }
  return false;
}

asio::awaitable<void> ParentClient::State::flush_later() {
  const auto self = shared_from_this();
  while (!lost && !stopped && flush()) {
    co_await readiness.async_wait(asio::posix::descriptor_base::wait_write, as_result);
  }
  flushing = false;
}

asio::awaitable<Result<std::shared_ptr<Waiting>>> ParentClient::State::call(Message message) {
  const auto self = shared_from_this();
  message.sequence = ++last_sequence;
  const std::uint32_t sequence = message.sequence;
  auto bytes = encode(message);
  if (bytes.size() > max_packet_bytes) {
    co_return failure(ErrorCode::invalid_request, "arguments and environment of a model process are too long");
  }
  auto mine = std::make_shared<Waiting>(executor);
  struct Forget {
    State& state;
    std::uint32_t sequence;
    ~Forget() { state.waiting.erase(sequence); }
  } forget{*this, sequence};
  waiting.emplace(sequence, mine);
  if (!post(std::move(bytes))) co_return failure(ErrorCode::io_failed, "the parent process is gone");
  if (!mine->answer) co_await mine->timer.async_wait(as_result);
  if (mine->answer && mine->answer->kind == MessageKind::failed) co_return std::unexpected(error_of(*mine->answer));
  if (mine->answer) co_return mine;
  if (lost) co_return failure(ErrorCode::io_failed, "the parent process is gone");
  if (stopped || mine->timer.expiry() > std::chrono::steady_clock::now()) {
    co_return failure(ErrorCode::cancelled, "the call to the parent process was cancelled");
  }
  co_return failure(ErrorCode::timeout, "the parent process does not answer");
}

ParentClient::ParentClient(asio::any_io_executor executor, FileDescriptor socket)
    : state_(std::make_shared<State>(std::move(executor), std::move(socket))) {}

ParentClient::~ParentClient() { stop(); }

void ParentClient::on_exit(std::function<void(ChildExit)> callback) { state_->exit_callback = std::move(callback); }
void ParentClient::on_lost(std::function<void()> callback) { state_->lost_callback = std::move(callback); }

void ParentClient::start() {
  asio::co_spawn(state_->executor, [state = state_] { return state->receive(); }, asio::detached);
}

void ParentClient::stop() {
  state_->stopped = true;
  state_->exit_callback = nullptr;
  state_->lost_callback = nullptr;
  boost::system::error_code ignored;
  state_->readiness.cancel(ignored);
  for (auto& [sequence, call] : state_->waiting) call->timer.cancel();
}

asio::awaitable<Result<Child>> ParentClient::spawn(SpawnRequest request) {
  std::string blob = request.blob;
  Message message{.kind = MessageKind::spawn,
                  .arguments = std::move(request.arguments),
                  .environment = std::move(request.environment),
                  .text = std::move(request.log_path),
                  .blob = std::move(request.blob)};
  const auto answered = co_await state_->call(std::move(message));
  if (!answered) co_return std::unexpected(answered.error());
  co_return Child{(*answered)->answer->id, (*answered)->answer->number, std::move(blob)};
}

asio::awaitable<Result<void>> ParentClient::signal(ChildId id, int signal_number) {
  const auto answered = co_await state_->call({.kind = MessageKind::signal, .id = id, .number = signal_number});
  if (!answered) co_return std::unexpected(answered.error());
  co_return Result<void>{};
}

asio::awaitable<Result<ChildList>> ParentClient::list() {
  const auto answered = co_await state_->call({.kind = MessageKind::list});
  if (!answered) co_return std::unexpected(answered.error());
  co_return ChildList{std::move((*answered)->children), (*answered)->answer->number == 1};
}

asio::awaitable<Result<FileDescriptor>> ParentClient::listen(std::string address) {
  const auto answered = co_await state_->call({.kind = MessageKind::listen, .text = std::move(address)});
  if (!answered) co_return std::unexpected(answered.error());
  if (!(*answered)->descriptor) co_return failure(ErrorCode::io_failed, "the parent sent no socket");
  co_return std::move((*answered)->descriptor);
}

void ParentClient::announce_ready() { state_->post(encode({.kind = MessageKind::ready})); }
void ParentClient::request_replacement() { state_->post(encode({.kind = MessageKind::replace})); }

}  // namespace molly::base
