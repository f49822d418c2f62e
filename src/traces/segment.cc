#include "traces/segment.h"

#include <cerrno>
#include <fstream>

#include "traces/encoding.h"

namespace molly::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".traces";

std::optional<Segment> parse_name(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.ends_with(suffix)) return std::nullopt;
  Segment segment{.path = path};
  const char* const end = name.data() + name.size() - suffix.size();
  const auto sequence = std::from_chars(name.data(), end, segment.sequence);
  if (sequence.ec != std::errc() || sequence.ptr == end || *sequence.ptr != '-') return std::nullopt;
  const auto start = std::from_chars(sequence.ptr + 1, end, segment.start);
  if (start.ec != std::errc() || start.ptr != end) return std::nullopt;
  return segment;
}

std::string padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return std::string(width - std::min(width, digits.size()), '0') + digits;
}

}  // namespace

fs::path segment_path(const fs::path& folder, std::uint64_t sequence, std::uint64_t start) {
  return folder / (padded(sequence, 10) + "-" + padded(start, 14) + std::string(suffix));
}

Result<std::vector<Segment>> list_segments(const fs::path& folder) {
  std::error_code problem;
  std::vector<Segment> out;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem)) {
    auto segment = parse_name(entry->path());
    std::error_code gone;
    if (!segment) continue;
    segment->bytes = entry->file_size(gone);
    if (!gone) out.push_back(std::move(*segment));
  }
  if (problem) {
    return failure(ErrorCode::io_failed,
                   "the folder of decision records " + folder.string() + " cannot be read: " + problem.message());
  }
  std::ranges::sort(out, {}, &Segment::sequence);
  return out;
}

Result<std::optional<std::string>> read_segment(const fs::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) {
    const int reason = errno;
    if (reason == ENOENT) return std::nullopt;
    return failure(ErrorCode::io_failed,
                   "the decision records in " + path.string() + " cannot be read: " + std::strerror(reason));
  }
  std::string content(static_cast<std::size_t>(std::max<std::streamoff>(in.tellg(), 0)), '\0');
  in.seekg(0);
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(in.gcount()));
  return content;
}

std::uint32_t checksum(std::string_view payload) {
  const std::uint64_t sum = hash(payload);
  return static_cast<std::uint32_t>(sum ^ sum >> 32);
}

Frames::Frames(std::string_view content) : content_(content) {
  if (content_.starts_with(segment_mark)) {
    position_ = segment_mark.size();
  } else {
    content_ = {};
  }
}

std::optional<std::string_view> Frames::next() {
  std::string_view rest = content_.substr(position_);
  if (rest.size() < frame_head_size) return std::nullopt;
  std::uint32_t length = 0;
  std::uint32_t sum = 0;
  std::memcpy(&length, rest.data(), sizeof length);
  std::memcpy(&sum, rest.data() + sizeof length, sizeof sum);
  rest.remove_prefix(frame_head_size);
  // Zeroes are what a crash of the machine leaves; a frame is never empty.
  if (length == 0 || length > rest.size()) return std::nullopt;
  const auto payload = rest.substr(0, length);
  if (checksum(payload) != sum) return std::nullopt;
  position_ += frame_head_size + length;
  return payload;
}

}  // namespace molly::traces
