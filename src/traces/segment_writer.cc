#include "traces/segment_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "traces/encoding.h"

namespace molly::traces {
namespace {

std::unexpected<Error> failed(const std::filesystem::path& path, std::string_view what) {
  const int reason = errno;
  return failure(ErrorCode::io_failed, "the decision records in " + path.string() + " cannot be " + std::string(what) +
                                           ": " + std::strerror(reason));
}

std::uint64_t now_in_milliseconds() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

std::uint32_t frame_length(const char* frame) {
  std::uint32_t length = 0;
  std::memcpy(&length, frame, sizeof length);
  return length;
}

std::uint64_t count_frames(std::string_view frames) {
  std::uint64_t count = 0;
  for (; !frames.empty(); ++count) frames.remove_prefix(frame_head_size + frame_length(frames.data()));
  return count;
}

std::string frame_of(std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size());
  const std::uint32_t sum = checksum(payload);
  std::string out(frame_head_size, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  std::memcpy(out.data() + sizeof length, &sum, sizeof sum);
  return out += payload;
}

}  // namespace

SegmentWriter::SegmentWriter(std::filesystem::path folder, std::uint64_t max_bytes, int lock)
    : folder_(std::move(folder)), max_bytes_(max_bytes), lock_(lock) {}

SegmentWriter::SegmentWriter(SegmentWriter&& other) noexcept
    : folder_(std::move(other.folder_)),
      max_bytes_(other.max_bytes_),
      lock_(std::exchange(other.lock_, -1)),
      file_(std::exchange(other.file_, -1)),
      segments_(std::move(other.segments_)),
      written_(std::move(other.written_)) {}

SegmentWriter::~SegmentWriter() {
  leave_segment();
  if (lock_ >= 0) ::close(lock_);
}

Result<SegmentWriter> SegmentWriter::open(std::filesystem::path folder, std::uint64_t max_bytes) {
  const int lock = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return failed(folder, "opened");
  SegmentWriter writer(std::move(folder), max_bytes, lock);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return failure(ErrorCode::conflict, "another Molly uses the folder " + writer.folder_.string() + "; stop it first");
  }
  if (auto resumed = writer.resume(); !resumed) return std::unexpected(std::move(resumed.error()));
  return writer;
}

Result<void> SegmentWriter::resume() {
  auto segments = list_segments(folder_);
  if (!segments) return std::unexpected(std::move(segments.error()));
  segments_ = std::move(*segments);
  if (segments_.empty()) return {};
  Segment& newest = segments_.back();
  const auto content = read_segment(newest.path);
  if (!content) return std::unexpected(content.error());
  if (!*content) return {};
  Frames frames(**content);
  while (frames.next()) {
  }
  // No mark at its start: it was torn at its birth, or is not ours to write into.
  if (frames.sound_bytes() == 0) return {};
  file_ = ::open(newest.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (file_ < 0) return failed(newest.path, "opened");
  if (::ftruncate(file_, static_cast<off_t>(frames.sound_bytes())) != 0) return failed(newest.path, "mended");
  newest.bytes = frames.sound_bytes();
  return {};
}

std::uint64_t SegmentWriter::segment_limit() const {
  return std::clamp<std::uint64_t>(max_bytes_ / 16, 64 << 10, 8 << 20);
}

void SegmentWriter::leave_segment() {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  written_.clear();
}

Result<void> SegmentWriter::begin_segment() {
  leave_segment();
  Segment next;
  next.sequence = segments_.empty() ? 1 : segments_.back().sequence + 1;
  next.start = now_in_milliseconds();
  next.path = segment_path(folder_, next.sequence, next.start);
  file_ = ::open(next.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file_ < 0) return failed(next.path, "made");
  segments_.push_back(std::move(next));
  return append(segment_mark);
}

// The oldest go, never the one being written.
void SegmentWriter::make_room(std::uint64_t bytes) {
  std::uint64_t total = bytes;
  for (const Segment& segment : segments_) total += segment.bytes;
  std::size_t dropped = 0;
  while (total > max_bytes_ && dropped + 1 < segments_.size()) {
    total -= segments_[dropped].bytes;
    ::unlink(segments_[dropped].path.c_str());
    ++dropped;
  }
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(dropped));
}

Result<void> SegmentWriter::append(std::string_view bytes) {
  if (bytes.empty()) return {};
  make_room(bytes.size());
  Segment& segment = segments_.back();
  if (write_all(file_, bytes)) {
    segment.bytes += bytes.size();
    return {};
  }
  auto problem = failed(segment.path, "written");
  // Half a frame would hide all that came after it: cut it off, and in case that fails too begin a new segment.
  [[maybe_unused]] const int cut = ::ftruncate(file_, static_cast<off_t>(segment.bytes));
  leave_segment();
  return problem;
}

Result<void> SegmentWriter::append_catalogue(std::uint64_t id, std::span<const SharedCatalogue> catalogues) {
  const auto found = std::ranges::find(catalogues, id, &SharedCatalogue::id);
  if (found == catalogues.end()) return {};
  if (auto done = append(frame_of(found->encoded())); !done) return done;
  written_.insert(id);
  return {};
}

Result<void> SegmentWriter::write(std::string& frames, std::span<const SharedCatalogue> catalogues) {
  safe_ = 0;
  auto done = write_all_frames(frames, catalogues);
  given_up_ = done ? 0 : count_frames(std::string_view(frames).substr(safe_));
  return done;
}

Result<void> SegmentWriter::write_all_frames(std::string& frames, std::span<const SharedCatalogue> catalogues) {
  for (std::size_t position = 0; position < frames.size();) {
    const std::uint32_t length = frame_length(frames.data() + position);
    const auto payload = std::string_view(frames).substr(position + frame_head_size, length);
    const std::uint32_t sum = checksum(payload);
    std::memcpy(frames.data() + position + sizeof length, &sum, sizeof sum);
    const auto waiting = std::string_view(frames).substr(safe_, position - safe_);
    const std::uint64_t id = decode_head(payload)->catalogue;
    const bool full = file_ < 0 || segments_.back().bytes + waiting.size() >= segment_limit();
    if (full || !written_.contains(id)) {
      if (auto done = append(waiting); !done) return done;
      safe_ = position;
      if (full) {
        if (auto done = begin_segment(); !done) return done;
      }
      if (auto done = append_catalogue(id, catalogues); !done) return done;
    }
    position += frame_head_size + length;
  }
  auto done = append(std::string_view(frames).substr(safe_));
  if (done) safe_ = frames.size();
  return done;
}

}  // namespace molly::traces
