#include "audit/segment_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <system_error>
#include <utility>

#include "audit/segment.h"

namespace molly::audit {
namespace {

std::unexpected<Error> cannot(std::string_view what, const std::filesystem::path& path, int error) {
  return failure(ErrorCode::io_failed,
                 std::format("Cannot {} {}: {}.", what, path.string(), std::generic_category().message(error)));
}

Result<void> sync_folder(const std::filesystem::path& folder) {
  const base::FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::fsync(directory.get()) != 0) return cannot("sync", folder, errno);
  return {};
}

}  // namespace

SegmentWriter::SegmentWriter(std::filesystem::path folder, std::uint32_t number, base::FileDescriptor file,
                             std::uint64_t size, FaultHook fault)
    : folder_(std::move(folder)), number_(number), file_(std::move(file)), size_(size), fault_(std::move(fault)) {}

std::unexpected<Error> SegmentWriter::failed(std::string_view what, int error) const {
  return cannot(what, segment_path(folder_, number_), error);
}

Result<void> SegmentWriter::write_at(std::uint64_t offset, std::string_view bytes) {
  const Fault fault = fault_ ? fault_(DiskCall::write) : Fault{};
  std::string_view left = fault.error == 0 ? bytes : bytes.substr(0, std::min(fault.after_bytes, bytes.size()));
  while (!left.empty()) {
    const ssize_t written = ::pwrite(file_.get(), left.data(), left.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("write", written < 0 ? errno : ENOSPC);
    left.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  if (fault.error != 0) return failed("write", fault.error);
  return {};
}

// A write that fails half-way leaves bytes behind size_: the next attempt overwrites or cuts them.
Result<void> SegmentWriter::append(std::string_view bytes) {
  if (auto written = write_at(size_, bytes); !written) return written;
  size_ += bytes.size();
  return {};
}

Result<void> SegmentWriter::sync() {
  const Fault fault = fault_ ? fault_(DiskCall::sync) : Fault{};
  if (fault.error != 0) return failed("sync", fault.error);
  if (::fdatasync(file_.get()) != 0) return failed("sync", errno);
  return {};
}

Result<void> SegmentWriter::rewrite_tail(std::string_view bytes) {
  if (auto written = write_at(size_ - bytes.size(), bytes); !written) return written;
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) return failed("cut", errno);
  return sync();
}

// Under another name until its header is on disk, so that no crash leaves a segment without one.
Result<SegmentWriter> SegmentWriter::create(const std::filesystem::path& folder, std::uint32_t number,
                                            std::uint64_t first_sequence, const Digest& previous, FaultHook fault) {
  const auto path = segment_path(folder, number);
  const auto unfinished = folder / "next.audit.new";
  base::FileDescriptor file(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return cannot("create", unfinished, errno);
  SegmentWriter writer(folder, number, std::move(file), 0, std::move(fault));
  if (auto written = writer.append(encode(SegmentHeader{number, first_sequence, previous})); !written)
    return std::unexpected(std::move(written.error()));
  if (auto synced = writer.sync(); !synced) return std::unexpected(std::move(synced.error()));
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return cannot("create", path, errno);
  if (auto synced = sync_folder(folder); !synced) return std::unexpected(std::move(synced.error()));
  return writer;
}

Result<SegmentWriter> SegmentWriter::begin_next(std::uint64_t first_sequence, const Digest& previous) const {
  return create(folder_, number_ + 1, first_sequence, previous, fault_);
}

Result<LogEnd> SegmentWriter::open_end(const std::filesystem::path& folder, FaultHook fault) {
  const auto numbers = list_segments(folder);
  if (!numbers) return std::unexpected(numbers.error());
  if (!numbers->empty()) return continue_segment(folder, numbers->back(), std::move(fault));
  auto writer = create(folder, 1, 1, Digest{}, std::move(fault));
  if (!writer) return std::unexpected(std::move(writer.error()));
  return LogEnd{.writer = std::move(*writer), .outcome = "new"};
}

Result<LogEnd> SegmentWriter::continue_segment(const std::filesystem::path& folder, std::uint32_t number,
                                               FaultHook fault) {
  auto walker = Walker::from_segment(folder, number);
  if (!walker) return std::unexpected(std::move(walker.error()));
  bool clean = false;
  while (true) {
    auto entry = walker->next();
    if (!entry) return std::unexpected(std::move(entry.error()));
    if (!*entry) break;
    clean = (*entry)->record.kind == Kind::closed;
  }
  const auto path = segment_path(folder, number);
  if (const auto& damage = walker->damage(); damage && !damage->torn)
    return failure(ErrorCode::io_failed,
                   std::format("The audit log is damaged at record {} ({}, byte {}): {}. Keep the folder as evidence: "
                               "move it away, and a new log begins.",
                               walker->next_sequence(), path.string(), damage->offset, damage->why));

  base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return cannot("open", path, errno);
  const std::uint64_t size = walker->good_bytes();
  const off_t present = ::lseek(file.get(), 0, SEEK_END);
  if (present < 0) return cannot("measure", path, errno);
  const std::uint64_t dropped = static_cast<std::uint64_t>(present) - size;
  if (dropped > 0 && ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) return cannot("cut", path, errno);
  return LogEnd{.writer = SegmentWriter(folder, number, std::move(file), size, std::move(fault)),
                .sequence = walker->next_sequence() - 1,
                .head = walker->head(),
                .outcome = dropped > 0 ? "torn"
                           : clean     ? "clean"
                                       : "unclean",
                .dropped_bytes = dropped};
}

}  // namespace molly::audit
