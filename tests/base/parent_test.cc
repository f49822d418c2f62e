#include "base/parent/parent.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "../temporary_folder.h"
#include "base/os/file.h"
#include "base/os/process.h"

// The real parent in a process of its own, with a stand-in for the control plane (stand_in.cc).
namespace molly::base {
namespace {

using namespace std::chrono_literals;

// A zombie that its new parent has not reaped yet counts as gone.
bool is_alive(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(in, text)) return false;
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

class RunningParent {
 public:
  explicit RunningParent(const std::string& mode = "plain") {
    const auto pid =
        spawn_process({.arguments = {own_program()->string(), "--act-as", "parent", folder_.path(), mode}});
    if (pid) pid_ = *pid;
  }
  ~RunningParent() {
    if (pid_ == 0) return;
    EXPECT_TRUE(is_alive(pid_)) << "the parent itself never crashes";
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  std::string ask(const std::string& command) {
    std::string answer;
    eventually([&] { return !(answer = ask_once(command)).empty(); });
    return answer;
  }
  pid_t ask_pid(const std::string& command) {
    const auto pid = static_cast<pid_t>(std::atol(ask(command).c_str()));
    EXPECT_GT(pid, 0) << command;
    return pid;
  }
  void signal(int number) { ::kill(pid_, number); }
  int wait_for_end() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  bool has_zombie() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children");
    for (pid_t child = 0; in >> child;) {
      if (!is_alive(child)) return true;
    }
    return false;
  }
  pid_t pid() const { return pid_; }
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

 private:
  std::string ask_once(const std::string& command) {
    const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    file("listen").string().copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
    const std::string line = command + "\n";
    if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return {};
    std::string answer;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::read(socket.get(), buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(count));
    }
    return answer;
  }

  TemporaryFolder folder_;
  pid_t pid_ = 0;
};

TEST(Parent, a_killed_control_plane_comes_back_and_children_and_sockets_survive) {
  RunningParent parent;
  const pid_t child = parent.ask_pid("sleep");
  const std::string children = parent.ask("list");
  EXPECT_EQ(children, "1=" + std::to_string(child) + "(remember me);");
  for (int round = 0; round < 5; ++round) {
    const pid_t plane = parent.ask_pid("pid");
    ::kill(plane, SIGKILL);
    EXPECT_TRUE(eventually([&] { return !is_alive(plane); }));
    EXPECT_NE(parent.ask_pid("pid"), plane);
    EXPECT_EQ(parent.ask("list"), children);
  }
  EXPECT_TRUE(is_alive(child));
  EXPECT_FALSE(parent.has_zombie());
}

TEST(Parent, a_control_plane_that_crashes_by_itself_comes_back) {
  RunningParent parent;
  const pid_t plane = parent.ask_pid("pid");
  parent.signal(SIGHUP);  // kills a process that does not handle it
  EXPECT_TRUE(eventually([&] { return !is_alive(plane); }));
  EXPECT_NE(parent.ask_pid("pid"), plane);
}

TEST(Parent, its_own_death_kills_everything_it_started) {
  RunningParent parent;
  const pid_t plane = parent.ask_pid("pid");
  const pid_t child = parent.ask_pid("sleep");
  const pid_t stubborn = parent.ask_pid("stubborn");
  parent.signal(SIGKILL);
  parent.wait_for_end();
  EXPECT_TRUE(eventually([&] { return !is_alive(plane) && !is_alive(child) && !is_alive(stubborn); }));
}

TEST(Parent, a_child_that_ends_is_reaped_and_reported) {
  RunningParent parent;
  parent.ask("sleep");
  EXPECT_EQ(parent.ask("kill 1"), "done");
  EXPECT_EQ(parent.ask("exits"), "killed by signal 9 (Killed);");
  EXPECT_EQ(parent.ask("kill 1"), "that model process has ended");
  EXPECT_FALSE(parent.has_zombie());
}

TEST(Parent, what_cannot_be_started_is_an_answer) {
  RunningParent parent;
  EXPECT_EQ(parent.ask("nonsense"), "cannot start /no/such/program: No such file or directory");
  for (int i = 0; i < 4; ++i) parent.ask("sleep");
  EXPECT_EQ(parent.ask("sleep"), "the parent keeps at most 4 model processes");
}

TEST(Parent, output_of_children_is_kept_in_two_bounded_files) {
  RunningParent parent;
  parent.ask("chatter");
  EXPECT_EQ(parent.ask("exits"), "exited with code 0;");
  EXPECT_LE(std::filesystem::file_size(parent.file("log")), 10'000U);
  EXPECT_LE(std::filesystem::file_size(parent.file("log.1")), 10'000U);
  EXPECT_FALSE(std::filesystem::exists(parent.file("log.2")));
  const auto last = read_file(parent.file("log"), 20'000);
  ASSERT_TRUE(last);
  EXPECT_TRUE(last->ends_with("20000\n"));
}

TEST(Parent, a_replacement_takes_over_when_it_is_ready) {
  RunningParent parent;
  const pid_t child = parent.ask_pid("sleep");
  const pid_t old = parent.ask_pid("pid");
  parent.signal(SIGUSR2);
  EXPECT_TRUE(eventually([&] { return !is_alive(old); }));
  EXPECT_NE(parent.ask_pid("pid"), old);
  EXPECT_TRUE(is_alive(child));
  EXPECT_EQ(parent.ask("kill 1"), "done") << "the new one is in charge";
}

TEST(Parent, the_control_plane_itself_may_ask_for_its_replacement) {
  RunningParent parent;
  const pid_t old = parent.ask_pid("pid");
  parent.ask("replace");
  EXPECT_TRUE(eventually([&] { return !is_alive(old); }));
  EXPECT_NE(parent.ask_pid("pid"), old);
}

TEST(Parent, a_superseded_control_plane_that_never_ends_is_killed) {
  RunningParent parent("deaf");
  const pid_t old = parent.ask_pid("pid");
  parent.signal(SIGUSR2);
  EXPECT_TRUE(eventually([&] { return !is_alive(old); }));
}

TEST(Parent, a_replacement_that_never_gets_ready_changes_nothing) {
  RunningParent parent("never-ready");
  const pid_t old = parent.ask_pid("pid");
  parent.signal(SIGUSR2);
  std::this_thread::sleep_for(600ms);
  EXPECT_TRUE(is_alive(old));
  EXPECT_EQ(parent.ask_pid("pid"), old) << "only the old one still accepts";
}

TEST(Parent, told_to_stop_it_drains_then_stops_children_and_takes_the_control_planes_code) {
  RunningParent parent("exits-with-5");
  const pid_t child = parent.ask_pid("sleep");
  const pid_t stubborn = parent.ask_pid("stubborn");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(parent.file("deaf")); }));
  parent.signal(SIGTERM);
  const int status = parent.wait_for_end();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_FALSE(is_alive(child));
  EXPECT_FALSE(is_alive(stubborn)) << "SIGTERM twice, then SIGKILL";
  EXPECT_FALSE(std::filesystem::exists(parent.file("listen")));
}

TEST(Parent, a_control_plane_that_refuses_its_configuration_ends_the_parent_with_its_code) {
  RunningParent parent("refuses-to-start");
  const int status = parent.wait_for_end();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(Parent, opens_further_listening_sockets_on_request) {
  RunningParent parent;
  const std::string address = "unix:" + parent.file("second").string();
  EXPECT_EQ(parent.ask("listen " + address), "listening");
  EXPECT_EQ(parent.ask("listen " + address), "listening") << "the same one again";
  EXPECT_TRUE(parent.ask("listen nonsense").contains("no address to listen on"));
}

}  // namespace
}  // namespace molly::base
