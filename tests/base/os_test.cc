#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <type_traits>

#include "../temporary_folder.h"
#include "base/os/file.h"
#include "base/os/memory.h"
#include "base/os/process.h"
#include "base/os/processors.h"
#include "base/os/socket.h"
#include "base/secret.h"

namespace molly::base {
namespace {

template <class T>
concept Printable = requires(std::ostream& out, const T& value) { out << value; };
static_assert(!Printable<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string> && !std::is_convertible_v<Secret, std::string_view>);

TEST(Secret, gives_its_text_only_when_asked_and_compares_by_it) {
  const Secret secret("open sesame, a text too long for the small buffer");
  Secret copy;
  copy = secret;
  EXPECT_EQ(copy.reveal(), "open sesame, a text too long for the small buffer");
  EXPECT_EQ(copy, secret);
  EXPECT_FALSE(copy == Secret("open sesame"));
}

TEST(Secret, leaves_nothing_in_the_string_it_was_taken_from) {
  std::string text = "short";
  const char* storage = text.data();
  const Secret secret = Secret::take(text);
  EXPECT_EQ(secret.reveal(), "short");
  EXPECT_EQ(std::string_view(storage, 5), std::string_view("\0\0\0\0\0", 5));
}

TEST(Secret, leaves_nothing_where_it_was_moved_from) {
  Secret from("short");
  const char* storage = from.reveal().data();
  const Secret to = std::move(from);
  EXPECT_EQ(to.reveal(), "short");
  EXPECT_EQ(std::string_view(storage, 5), std::string_view("\0\0\0\0\0", 5));
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(File, a_private_folder_is_made_or_narrowed_to_its_owner) {
  const TemporaryFolder folder;
  ASSERT_TRUE(make_private_folder(folder.path() / "a" / "b"));
  EXPECT_EQ(mode_of(folder.path() / "a" / "b"), 0700U);
  EXPECT_EQ(mode_of(folder.path() / "a"), 0700U);
  ::chmod((folder.path() / "a").c_str(), 0755);
  ASSERT_TRUE(make_private_folder(folder.path() / "a"));
  EXPECT_EQ(mode_of(folder.path() / "a"), 0700U);
}

TEST(File, an_atomic_write_replaces_the_whole_content_for_the_owner_only) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  ASSERT_TRUE(write_file_atomically(path, "first and long"));
  ASSERT_TRUE(write_file_atomically(path, "second", Durability::kernel));
  EXPECT_EQ(read_file(path, 100), "second");
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, a_failed_write_leaves_no_temporary_file) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "taken" / "by a folder");
  EXPECT_FALSE(write_file_atomically(folder.path() / "taken", "text"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, reading_is_bounded) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder.path() / "file", std::string(101, 'x')));
  EXPECT_EQ(read_file(folder.path() / "file", 100).error().code, ErrorCode::payload_too_large);
  EXPECT_EQ(read_file(folder.path() / "absent", 100).error().code, ErrorCode::io_failed);
}

TEST(FileLock, excludes_a_second_holder_until_the_first_is_gone) {
  const TemporaryFolder folder;
  auto first = FileLock::acquire(folder.path() / "lock");
  ASSERT_TRUE(first);
  EXPECT_EQ(FileLock::acquire(folder.path() / "lock").error().code, ErrorCode::conflict);
  first = failure(ErrorCode::internal, "dropped");
  EXPECT_TRUE(FileLock::acquire(folder.path() / "lock"));
}

int exit_status_of(const ProcessOptions& options) {
  const auto pid = spawn_process(options);
  EXPECT_TRUE(pid) << pid.error().message;
  int status = -1;
  if (pid) ::waitpid(*pid, &status, 0);
  return status;
}

TEST(Process, a_program_that_is_not_there_is_an_error_value) {
  const auto pid = spawn_process({.arguments = {"/no/such/program"}});
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().message, "cannot start /no/such/program: No such file or directory");
}

TEST(Process, a_child_sees_only_the_environment_and_descriptors_it_was_given) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, 0), 0);  // without close-on-exec on purpose
  const FileDescriptor reading(pipe_ends[0]);
  FileDescriptor writing(pipe_ends[1]);
  const std::string script = "echo \"$ONLY|$HOME|$(ls /proc/self/fd | tr '\\n' ' ')\" >&7";
  const int status = exit_status_of({.arguments = {"/bin/sh", "-c", script},
                                     .environment = {"ONLY=this", "PATH=/usr/bin:/bin"},
                                     .descriptors = {{writing.get(), 7}}});
  EXPECT_EQ(status, 0);
  writing.close();
  char buffer[200] = {};
  ASSERT_GT(::read(reading.get(), buffer, sizeof buffer - 1), 0);
  EXPECT_STREQ(buffer, "this||0 1 2 3 7 \n") << "3 is what ls itself has open";
}

TEST(Process, descriptors_may_be_handed_over_crosswise) {
  const TemporaryFolder folder;
  const FileDescriptor first(::open((folder.path() / "first").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const FileDescriptor second(::open((folder.path() / "second").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const std::string script =
      "echo to-second >&" + std::to_string(first.get()) + "; echo to-first >&" + std::to_string(second.get());
  exit_status_of({.arguments = {"/bin/bash", "-c", script},
                  .descriptors = {{first.get(), second.get()}, {second.get(), first.get()}}});
  EXPECT_EQ(read_file(folder.path() / "first", 100), "to-first\n");
  EXPECT_EQ(read_file(folder.path() / "second", 100), "to-second\n");
}

TEST(Process, ends_are_described_for_people) {
  EXPECT_EQ(describe_exit(exit_status_of({.arguments = {"/bin/sh", "-c", "exit 3"}})), "exited with code 3");
  EXPECT_EQ(describe_exit(exit_status_of({.arguments = {"/bin/sh", "-c", "kill -9 $$"}})),
            "killed by signal 9 (Killed)");
}

TEST(Process, programs_are_found_in_the_path) {
  EXPECT_TRUE(find_program("sh"));
  EXPECT_EQ(find_program("/bin/sh"), std::filesystem::path("/bin/sh"));
  EXPECT_EQ(find_program("./not-here").error().code, ErrorCode::not_found);
  EXPECT_EQ(find_program("no-such-program-anywhere").error().code, ErrorCode::not_found);
}

TEST(Socket, a_network_listener_tells_the_port_it_got) {
  const auto socket = listen_on("127.0.0.1:0");
  ASSERT_TRUE(socket) << socket.error().message;
  const auto address = bound_address(socket->get());
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->starts_with("127.0.0.1:")) << *address;
  EXPECT_NE(*address, "127.0.0.1:0");
  EXPECT_FALSE(listen_on(*address)) << "the port is taken";
}

TEST(Socket, addresses_that_are_none_are_refused) {
  for (const char* text :
       {"", "localhost:80", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:80", "[::1", "unix:"}) {
    const auto socket = listen_on(text);
    ASSERT_FALSE(socket) << text;
    EXPECT_EQ(socket.error().code, ErrorCode::invalid_request) << text;
  }
  EXPECT_EQ(listen_on("unix:/tmp/" + std::string(200, 'x')).error().code, ErrorCode::invalid_request);
}

TEST(Socket, a_unix_listener_is_for_its_owner_and_replaces_a_stale_file) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "s.sock").string();
  std::ofstream(path) << "left behind";
  const auto socket = listen_on("unix:" + path);
  ASSERT_TRUE(socket) << socket.error().message;
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(bound_address(socket->get()), "unix:" + path);
  EXPECT_EQ(listen_on("unix:" + path).error().code, ErrorCode::conflict);
}

TEST(Socket, packets_keep_their_borders_and_carry_descriptors) {
  auto ends = packet_pair();
  ASSERT_TRUE(ends);
  EXPECT_EQ(receive_packet(ends->second.get()).outcome, ReceiveOutcome::would_block);
  const std::vector<std::uint8_t> first{1, 2, 3};
  const std::vector<std::uint8_t> second{4};
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const FileDescriptor reading(pipe_ends[0]);
  FileDescriptor writing(pipe_ends[1]);
  EXPECT_EQ(send_packet(ends->first.get(), first, reading.get()), SendOutcome::sent);
  EXPECT_EQ(send_packet(ends->first.get(), second), SendOutcome::sent);
  const Received with = receive_packet(ends->second.get());
  EXPECT_EQ(with.packet.message, first);
  ASSERT_EQ(::write(writing.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(with.packet.descriptor.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  const Received without = receive_packet(ends->second.get());
  EXPECT_EQ(without.packet.message, second);
  EXPECT_FALSE(without.packet.descriptor);
  ends->first.close();
  EXPECT_EQ(receive_packet(ends->second.get()).outcome, ReceiveOutcome::closed);
}

TEST(Socket, the_other_end_is_known) {
  auto ends = packet_pair();
  ASSERT_TRUE(ends);
  const auto peer = peer_credentials(ends->first.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->user, ::geteuid());
}

TEST(Memory, meminfo_lines_are_read_in_bytes) {
  const std::string_view text = "MemTotal:       24588460 kB\nMemFree:  5 kB\nMemAvailable:   23000000 kB\n";
  EXPECT_EQ(meminfo_bytes(text, "MemTotal"), 24588460ULL * 1024);
  EXPECT_EQ(meminfo_bytes(text, "MemAvailable"), 23000000ULL * 1024);
  EXPECT_EQ(meminfo_bytes(text, "Mem"), 0U);
  EXPECT_EQ(meminfo_bytes("", "MemTotal"), 0U);
}

TEST(Memory, a_process_holds_some_until_it_is_gone) {
  const std::uint64_t ours = resident_bytes(::getpid());
  EXPECT_GT(ours, 1U << 20);
  const std::vector<char> more(64 << 20, 'x');
  EXPECT_GE(resident_bytes(::getpid()) + (1 << 20), ours + more.size());
  EXPECT_EQ(resident_bytes(0), 0U);
}

TEST(Memory, this_machine_has_some) {
  const MemoryState state = memory_state();
  EXPECT_GT(state.total_bytes, 0U);
  EXPECT_LE(state.available_bytes, state.total_bytes);
}

TEST(Memory, children_of_our_parent_count_and_we_do_not) { EXPECT_LT(bytes_of_siblings(), memory_state().total_bytes); }

std::string list_or_mistake(std::string_view list) {
  const auto parsed = parse_processors(list);
  return parsed ? processors_text(*parsed) : parsed.error().message;
}

TEST(Processors, lists_are_read_strictly_and_written_shortest) {
  EXPECT_EQ(list_or_mistake("0"), "0");
  EXPECT_EQ(list_or_mistake("0,2-3"), "0,2-3");
  EXPECT_EQ(list_or_mistake("3,1,2,0"), "0-3");
  EXPECT_EQ(list_or_mistake("4-4,6"), "4,6");
  for (const char* wrong :
       {"", ",", "0,", "a", "0 1", "3-1", "-1", "1-", "0,,1", "+1", "0x1", "99999999999999999999"}) {
    EXPECT_TRUE(list_or_mistake(wrong).contains("write for example 0,2-3")) << wrong;
  }
  EXPECT_TRUE(list_or_mistake("0-1,1").contains("named twice"));
  EXPECT_TRUE(list_or_mistake("0-4000000000").contains("they end at 1023"));
}

TEST(Processors, what_is_not_there_is_named_and_what_is_there_can_be_chosen) {
  const auto usable = usable_processors();
  ASSERT_FALSE(usable.empty());
  const auto chosen = choose_processors(processors_text(usable));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, usable);
  const auto missing = choose_processors("0,1023");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.contains("1023 does not exist")) << missing.error().message;
  EXPECT_LE(usable_cores(), usable.size());
}

TEST(Processors, a_bound_thread_and_those_it_starts_stay_there) {
  std::thread([] {
    const auto last = usable_processors().back();
    ASSERT_TRUE(run_only_on(std::vector{last}));
    EXPECT_EQ(usable_processors(), std::vector{last});
    EXPECT_EQ(usable_cores(), 1U);
    std::thread([&] { EXPECT_EQ(usable_processors(), std::vector{last}); }).join();
  }).join();
}

TEST(Processors, quotas_of_control_groups_count_as_whole_cores) {
  EXPECT_EQ(quota_cores("150000 100000"), 2U);
  EXPECT_EQ(quota_cores("50000 100000"), 1U);
  EXPECT_EQ(quota_cores("400000 100000"), 4U);
  for (const char* none : {"max 100000", "-1 100000", "", " ", "100000 0", "100000"}) {
    EXPECT_EQ(quota_cores(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace molly::base
