#include "base/parent/parent.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <list>

#include "base/os/process.h"
#include "base/os/signals.h"
#include "base/os/socket.h"
#include "base/parent/child_log.h"
#include "base/parent/protocol.h"

extern char** environ;

namespace molly::base {
namespace {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using std::chrono::milliseconds;

constexpr int first_inherited_descriptor = 3;
constexpr std::size_t max_unsent_messages = 1024;
constexpr std::size_t max_listeners = 64;
constexpr int max_messages_at_once = 64;

void say(const std::string& text) { std::fprintf(stderr, "molly: %s\n", text.c_str()); }

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  return result;
}

struct Listener {
  std::string address;
  FileDescriptor socket;
};

Result<Listener> open_listener(const std::string& address) {
  // Addresses are handed on in one argument, separated by semicolons.
  if (address.contains(';')) return failure(ErrorCode::invalid_request, "an address to listen on may not hold \";\"");
  auto socket = listen_on(address);
  if (!socket) return std::unexpected(socket.error());
  return Listener{address, *std::move(socket)};
}

enum class Role : std::uint8_t {
  active,      // in charge of the children
  candidate,   // a replacement that does not serve yet
  superseded,  // finishes its requests, then ends
};

struct ControlPlane {
  pid_t pid = 0;
  Role role = Role::active;
  bool ready = false;
  FileDescriptor socket;
  std::deque<std::vector<std::uint8_t>> unsent;
  TimePoint started;
  TimePoint kill_at = TimePoint::max();
};

struct ModelChild {
  pid_t pid = 0;
  std::string blob;
  ChildLog log;
  int stop_signals_sent = 0;
  TimePoint next_stop_step = TimePoint::max();
};

class Parent {
 public:
  explicit Parent(const ParentOptions& options) : options_(options) {}
  int run();

 private:
  bool open_listeners();
  void remove_socket_files();
  void loop_once();
  std::vector<pollfd> watched() const;
  int poll_timeout() const;

  void handle_signal(int number);
  void handle_time();
  void handle_ended();
  void handle_plane_end(std::list<ControlPlane>::iterator plane, int status);
  void handle_child_end(std::uint64_t id, int status);
  void receive_from(ControlPlane& plane);
  void handle(ControlPlane& plane, const Message& message);
  Message answer(ControlPlane& plane, const Message& message);
  Message spawn(const Message& message);
  Message signal_child(const Message& message);
  void send_list(ControlPlane& plane, const Message& message);
  void send_listener(ControlPlane& plane, const Message& message);
  void become_ready(ControlPlane& plane);

  void send(ControlPlane& plane, const Message& message, int descriptor = -1);
  void send_unsent(ControlPlane& plane);

  void start_plane(Role role);
  void start_replacement();
  void schedule_restart(const ControlPlane& crashed, int status);
  void stop_planes(int number);
  void stop_children();
  void step_child_stops(TimePoint now);
  ControlPlane* with_role(Role role);

  const ParentOptions& options_;
  std::vector<Listener> listeners_;
  std::optional<SignalEvents> signals_;
  std::list<ControlPlane> planes_;  // a message from one of them may add another: references must stay good
  std::map<std::uint64_t, ModelChild> children_;
  std::uint64_t last_child_ = 0;
  std::uint32_t crashes_ = 0;
  bool ever_ready_ = false;
  bool stopping_ = false;
  bool stopping_children_ = false;
  TimePoint restart_at_ = TimePoint::max();
  int exit_code_ = 0;
};

bool Parent::open_listeners() {
  for (const auto& address : options_.listen) {
    auto listener = open_listener(address);
    if (!listener) {
      say(listener.error().message);
      return false;
    }
    listeners_.push_back(*std::move(listener));
  }
  return true;
}

// A listener's file would only mislead whoever looks for us.
void Parent::remove_socket_files() {
  for (const auto& listener : listeners_) {
    if (listener.address.starts_with("unix:")) ::unlink(listener.address.c_str() + 5);
  }
}

int Parent::run() {
  auto signals = SignalEvents::open({SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD});
  if (!signals) {
    say(signals.error().message);
    return 1;
  }
  signals_ = *std::move(signals);
  ignore_broken_pipe();
  if (!open_listeners()) return 1;
  start_plane(Role::active);
  while (!stopping_ || !planes_.empty() || !children_.empty()) loop_once();
  remove_socket_files();
  return exit_code_;
}

void Parent::loop_once() {
  auto watch = watched();
  if (::poll(watch.data(), watch.size(), poll_timeout()) < 0 && errno != EINTR) {
    say("cannot wait for events: " + std::string(std::strerror(errno)));
    ::usleep(10'000);
  }
  // Messages before ends: what a control plane asked for just before it died is still done, and seen by the next.
  for (auto& plane : planes_) {
    send_unsent(plane);
    receive_from(plane);
  }
  for (auto& [id, child] : children_) child.log.drain();
  while (const auto number = signals_->next()) handle_signal(*number);
  handle_ended();
  handle_time();
  if (stopping_ && planes_.empty() && !stopping_children_) stop_children();
}

std::vector<pollfd> Parent::watched() const {
  std::vector<pollfd> watch{{signals_->descriptor(), POLLIN, 0}};
  for (const auto& plane : planes_) {
    const short events = plane.unsent.empty() ? POLLIN : POLLIN | POLLOUT;
    if (plane.socket) watch.push_back({plane.socket.get(), events, 0});
  }
  for (const auto& [id, child] : children_) {
    if (child.log.descriptor() >= 0) watch.push_back({child.log.descriptor(), POLLIN, 0});
  }
  return watch;
}

int Parent::poll_timeout() const {
  TimePoint next = restart_at_;
  for (const auto& plane : planes_) next = std::min(next, plane.kill_at);
  for (const auto& [id, child] : children_) next = std::min(next, child.next_stop_step);
  if (next == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void Parent::handle_signal(int number) {
  if (number == SIGHUP) {
    if (auto* plane = with_role(Role::active)) ::kill(plane->pid, SIGHUP);
  } else if (number == SIGUSR2) {
    start_replacement();
  } else if (number == SIGTERM || number == SIGINT) {
    if (stopping_) {
      stop_planes(SIGKILL);
      for (auto& [id, child] : children_) ::kill(-child.pid, SIGKILL);
      return;
    }
    stopping_ = true;
    restart_at_ = TimePoint::max();
    stop_planes(SIGTERM);
  }
}

void Parent::handle_time() {
  const TimePoint now = Clock::now();
  for (auto& plane : planes_) {
    if (now < plane.kill_at) continue;
    say("the control plane (process " + std::to_string(plane.pid) + ") took too long and is killed");
    ::kill(plane.pid, SIGKILL);
    plane.kill_at = TimePoint::max();
  }
  step_child_stops(now);
  if (now >= restart_at_) {
    restart_at_ = TimePoint::max();
    start_plane(Role::active);
  }
}

void Parent::handle_ended() {
  while (const auto ended = reap_child()) {
    const auto plane = std::ranges::find(planes_, ended->pid, &ControlPlane::pid);
    if (plane != planes_.end()) {
      handle_plane_end(plane, ended->status);
      continue;
    }
    const auto child = std::ranges::find(children_, ended->pid, [](const auto& entry) { return entry.second.pid; });
    if (child != children_.end()) handle_child_end(child->first, ended->status);
  }
}

void Parent::handle_plane_end(std::list<ControlPlane>::iterator plane, int status) {
  receive_from(*plane);
  const ControlPlane ended = std::move(*plane);
  planes_.erase(plane);
  if (ended.role == Role::candidate) {
    say("the new control plane " + describe_exit(status) + " before it was ready; the old one goes on");
  } else if (ended.role == Role::active && stopping_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } else if (ended.role == Role::active && !ever_ready_ && WIFEXITED(status)) {
    // It never served: a wrong configuration will not get better by trying again.
    exit_code_ = WEXITSTATUS(status);
    stopping_ = true;
  } else if (ended.role == Role::active) {
    schedule_restart(ended, status);
  }
}

void Parent::schedule_restart(const ControlPlane& crashed, int status) {
  if (auto* candidate = with_role(Role::candidate)) {
    say("the control plane " + describe_exit(status) + "; its replacement takes over");
    candidate->role = Role::active;
    candidate->kill_at = TimePoint::max();
    return;
  }
  const TimePoint now = Clock::now();
  if (now - crashed.started >= options_.stable_after) crashes_ = 0;
  const auto doubled = options_.first_restart_delay * (std::int64_t{1} << std::min(crashes_, 20U));
  const auto delay = std::min<milliseconds>(doubled, options_.max_restart_delay);
  ++crashes_;
  say("the control plane " + describe_exit(status) + "; starting it again in " + std::to_string(delay.count()) +
      " ms (" + std::to_string(children_.size()) + " children and all listening sockets stay)");
  restart_at_ = now + delay;
}

void Parent::handle_child_end(std::uint64_t id, int status) {
  const auto child = children_.find(id);
  child->second.log.drain();
  children_.erase(child);
  for (auto& plane : planes_) send(plane, {.kind = MessageKind::exited, .id = id, .number = status});
}

void Parent::receive_from(ControlPlane& plane) {
  for (int i = 0; i < max_messages_at_once && plane.socket; ++i) {
    const Received received = receive_packet(plane.socket.get());
    if (received.outcome == ReceiveOutcome::would_block) return;
    if (received.outcome == ReceiveOutcome::received) {
      if (const auto message = decode(received.packet.message)) {
        handle(plane, *message);
        continue;
      }
    }
    // Closed, or something that no control plane of ours sends.
    if (received.outcome != ReceiveOutcome::closed) ::kill(plane.pid, SIGKILL);
    plane.socket.close();
  }
}

void Parent::handle(ControlPlane& plane, const Message& message) {
  switch (message.kind) {
    case MessageKind::ready: return become_ready(plane);
    case MessageKind::replace: return start_replacement();
    case MessageKind::list: return send_list(plane, message);
    case MessageKind::listen: return send_listener(plane, message);
    default: return send(plane, answer(plane, message));
  }
}

Message Parent::answer(ControlPlane& plane, const Message& message) {
  if (plane.role != Role::active || stopping_children_) {
    return {.kind = MessageKind::failed,
            .sequence = message.sequence,
            .number = 1,
            .text = "another control plane is in charge of the model processes"};
  }
  if (message.kind == MessageKind::spawn) return spawn(message);
  if (message.kind == MessageKind::signal) return signal_child(message);
  return {.kind = MessageKind::failed, .sequence = message.sequence, .text = "the parent does not know that message"};
}

Message Parent::spawn(const Message& message) {
  Message refused{.kind = MessageKind::failed, .sequence = message.sequence};
  if (children_.size() >= options_.max_children) {
    refused.text = "the parent keeps at most " + std::to_string(options_.max_children) + " model processes";
    return refused;
  }
  if (message.blob.size() > max_blob_bytes) {
    refused.text = "what the parent should remember of a model process is too long";
    return refused;
  }
  auto log = ChildLog::open(message.text, options_.log_bytes);
  if (!log) {
    refused.text = log.error().message;
    return refused;
  }
  const auto pid = spawn_process({.arguments = message.arguments,
                                  .environment = message.environment,
                                  .descriptors = {{log->child_end(), 1}, {log->child_end(), 2}},
                                  .own_session = true});
  if (!pid) {
    refused.text = pid.error().message;
    return refused;
  }
  log->close_child_end();
  children_.emplace(++last_child_, ModelChild{.pid = *pid, .blob = message.blob, .log = *std::move(log)});
  return {.kind = MessageKind::spawned, .sequence = message.sequence, .id = last_child_, .number = *pid};
}

Message Parent::signal_child(const Message& message) {
  const auto child = children_.find(message.id);
  // A child that has exited is not reaped before its entry is gone, so the process id is still its own.
  if (child != children_.end()) {
    ::kill(message.number == SIGKILL ? -child->second.pid : child->second.pid, message.number);
    return {.kind = MessageKind::done, .sequence = message.sequence};
  }
  return {.kind = MessageKind::failed, .sequence = message.sequence, .text = "that model process has ended"};
}

void Parent::send_list(ControlPlane& plane, const Message& message) {
  for (const auto& [id, child] : children_) {
    send(plane,
         {.kind = MessageKind::child, .sequence = message.sequence, .id = id, .number = child.pid, .blob = child.blob});
  }
  const bool draining = std::ranges::any_of(
      planes_, [&](const ControlPlane& other) { return other.pid != plane.pid && other.role != Role::candidate; });
  send(plane, {.kind = MessageKind::list_end, .sequence = message.sequence, .number = draining ? 1 : 0});
}

void Parent::send_listener(ControlPlane& plane, const Message& message) {
  auto known = std::ranges::find(listeners_, message.text, &Listener::address);
  if (known == listeners_.end()) {
    auto listener = listeners_.size() < max_listeners ? open_listener(message.text)
                                                      : failure(ErrorCode::io_failed, "too many listening sockets");
    if (!listener) {
      send(plane, {.kind = MessageKind::failed, .sequence = message.sequence, .text = listener.error().message});
      return;
    }
    listeners_.push_back(*std::move(listener));
    known = std::prev(listeners_.end());
  }
  send(plane, {.kind = MessageKind::listening, .sequence = message.sequence}, known->socket.get());
}

void Parent::become_ready(ControlPlane& plane) {
  plane.ready = true;
  ever_ready_ = true;
  if (plane.role != Role::candidate) return;
  if (auto* old = with_role(Role::active)) {
    say("the new control plane (process " + std::to_string(plane.pid) + ") serves; the old one (process " +
        std::to_string(old->pid) + ") finishes its requests");
    old->role = Role::superseded;
    old->kill_at = Clock::now() + options_.drain_limit;
    ::kill(old->pid, SIGTERM);
  }
  plane.role = Role::active;
  plane.kill_at = TimePoint::max();
}

void Parent::send(ControlPlane& plane, const Message& message, int descriptor) {
  if (!plane.socket) return;
  auto bytes = encode(message);
  auto outcome = SendOutcome::would_block;
  if (plane.unsent.empty()) outcome = send_packet(plane.socket.get(), bytes, descriptor);
  if (outcome != SendOutcome::would_block) return;
  // Descriptors are not queued: the control plane's call runs into its deadline and it may ask again.
  if (descriptor < 0) plane.unsent.push_back(std::move(bytes));
  if (plane.unsent.size() > max_unsent_messages) {
    say("the control plane (process " + std::to_string(plane.pid) + ") no longer listens to us and is killed");
    ::kill(plane.pid, SIGKILL);
    plane.unsent.clear();
    plane.socket.close();
  }
}

void Parent::send_unsent(ControlPlane& plane) {
  while (plane.socket && !plane.unsent.empty()) {
    if (send_packet(plane.socket.get(), plane.unsent.front()) == SendOutcome::would_block) return;
    plane.unsent.pop_front();
  }
}

void Parent::start_plane(Role role) {
  auto ends = packet_pair();
  if (!ends) {
    say(ends.error().message);
    if (role == Role::active) restart_at_ = Clock::now() + options_.max_restart_delay;
    return;
  }
  std::vector<InheritedDescriptor> descriptors{{ends->second.get(), first_inherited_descriptor}};
  std::string inherited = std::to_string(first_inherited_descriptor);
  for (const auto& listener : listeners_) {
    const int number = first_inherited_descriptor + static_cast<int>(descriptors.size());
    descriptors.push_back({listener.socket.get(), number});
    inherited += ";" + std::to_string(number) + "=" + listener.address;
  }
  auto arguments = options_.command;
  arguments.push_back("--inherited=" + inherited);
  const auto pid = spawn_process(
      {.arguments = std::move(arguments), .environment = own_environment(), .descriptors = std::move(descriptors)});
  if (pid) {
    planes_.push_back({.pid = *pid, .role = role, .socket = std::move(ends->first), .started = Clock::now()});
    return;
  }
  say(pid.error().message);
  if (!ever_ready_) {
    stopping_ = true;
    exit_code_ = 1;
  } else if (role == Role::active) {
    restart_at_ = Clock::now() + options_.max_restart_delay;
  }
}

void Parent::start_replacement() {
  if (stopping_ || with_role(Role::candidate) != nullptr) return;
  auto* active = with_role(Role::active);
  if (active == nullptr) return;  // one is about to be started anyway
  start_plane(Role::candidate);
  if (auto* candidate = with_role(Role::candidate)) {
    candidate->kill_at = Clock::now() + options_.replacement_limit;
  }
}

void Parent::stop_planes(int number) {
  for (auto& plane : planes_) {
    // A replacement that does not serve yet has nothing to finish.
    ::kill(plane.pid, plane.role == Role::candidate ? SIGKILL : number);
    plane.kill_at = std::min(plane.kill_at, Clock::now() + options_.drain_limit);
  }
}

void Parent::stop_children() {
  stopping_children_ = true;
  for (auto& [id, child] : children_) child.next_stop_step = Clock::now();
  step_child_stops(Clock::now());
}

// A model server with an open stream ignores the first SIGTERM and obeys the second.
void Parent::step_child_stops(TimePoint now) {
  for (auto& [id, child] : children_) {
    if (now < child.next_stop_step) continue;
    const bool last = child.stop_signals_sent >= 2;
    ::kill(last ? -child.pid : child.pid, last ? SIGKILL : SIGTERM);
    ++child.stop_signals_sent;
    child.next_stop_step = last ? TimePoint::max() : now + options_.stop_step;
  }
}

ControlPlane* Parent::with_role(Role role) {
  const auto found = std::ranges::find(planes_, role, &ControlPlane::role);
  return found == planes_.end() ? nullptr : &*found;
}

}  // namespace

int run_parent(const ParentOptions& options) { return Parent(options).run(); }

}  // namespace molly::base
