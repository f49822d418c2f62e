#include "audit/segment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <format>
#include <system_error>

#include "audit/digest.h"
#include "audit/encoding.h"

namespace molly::audit {
namespace {

constexpr std::string_view magic = "mollyaud";
constexpr std::uint32_t format = 1;
constexpr std::size_t read_bytes = 32 * 1024;

template <class Integer>
Integer get(std::string_view bytes, std::size_t offset) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    value |= static_cast<Integer>(static_cast<std::uint8_t>(bytes[offset + i])) << (8 * i);
  return value;
}

Digest get_digest(std::string_view bytes, std::size_t offset) {
  Digest digest;
  std::memcpy(digest.data(), bytes.data() + offset, digest.size());
  return digest;
}

std::string_view view(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

std::unexpected<Error> cannot(std::string_view what, const std::filesystem::path& path) {
  return failure(ErrorCode::io_failed,
                 std::format("Cannot {} {}: {}.", what, path.string(), std::generic_category().message(errno)));
}

}  // namespace

std::string encode(const SegmentHeader& header) {
  std::string out(magic);
  put(out, format);
  put(out, header.number);
  put(out, header.first_sequence);
  put(out, std::uint64_t{0});
  put(out, header.previous);
  return out;
}

std::optional<SegmentHeader> decode_header(std::string_view bytes) {
  if (bytes.size() != header_bytes) return std::nullopt;
  const SegmentHeader header{get<std::uint32_t>(bytes, 12), get<std::uint64_t>(bytes, 16), get_digest(bytes, 32)};
  if (encode(header) != bytes) return std::nullopt;
  return header;
}

std::filesystem::path segment_path(const std::filesystem::path& folder, std::uint32_t number) {
  return folder / std::format("{:08}.audit", number);
}

Result<std::vector<std::uint32_t>> list_segments(const std::filesystem::path& folder) {
  std::error_code problem;
  std::vector<std::uint32_t> numbers;
  for (auto entry = std::filesystem::directory_iterator(folder, problem);
       !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem)) {
    const std::string stem = entry->path().stem().string();
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
    if (error == std::errc() && segment_path(folder, number) == entry->path()) numbers.push_back(number);
  }
  if (problem)
    return failure(ErrorCode::io_failed, std::format("Cannot read {}: {}.", folder.string(), problem.message()));
  std::ranges::sort(numbers);
  return numbers;
}

std::optional<std::uint64_t> first_sequence_of(const std::filesystem::path& folder, std::uint32_t number) {
  const base::FileDescriptor file(::open(segment_path(folder, number).c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes(header_bytes, '\0');
  if (!file || ::pread(file.get(), bytes.data(), bytes.size(), 0) != header_bytes) return std::nullopt;
  const auto header = decode_header(bytes);
  if (!header) return std::nullopt;
  return header->first_sequence;
}

Digest frame_to(std::string& out, const Digest& previous, std::uint64_t sequence,
                std::chrono::system_clock::time_point time, const Record& record) {
  const std::size_t start = out.size();
  put(out, std::uint32_t{0});
  encode_to(out, sequence, time, record);
  const auto length = static_cast<std::uint32_t>(out.size() - start - length_bytes);
  for (std::size_t i = 0; i < length_bytes; ++i) out[start + i] = static_cast<char>(length >> (8 * i) & 255);
  const Digest hash = sha256(view(previous), std::string_view(out).substr(start));
  put(out, hash);
  return hash;
}

// Tells a record whose end is missing from one whose length was altered so that it seems to be.
bool is_cut_short(std::string_view bytes) {
  if (bytes.size() < length_bytes) return true;
  const auto implied = implied_length(bytes.substr(length_bytes));
  return !implied || *implied == get<std::uint32_t>(bytes, 0) || std::ranges::count(bytes, 0) == std::ssize(bytes);
}

Walker::Walker(std::filesystem::path folder, std::vector<std::uint32_t> numbers)
    : folder_(std::move(folder)), numbers_(std::move(numbers)) {}

Result<Walker> Walker::from_beginning(const std::filesystem::path& folder) {
  auto numbers = list_segments(folder);
  if (!numbers) return std::unexpected(std::move(numbers.error()));
  return Walker(folder, std::move(*numbers));
}

Result<Walker> Walker::from_segment(const std::filesystem::path& folder, std::uint32_t number) {
  auto walker = from_beginning(folder);
  if (!walker) return walker;
  std::erase_if(walker->numbers_, [number](std::uint32_t other) { return other < number; });
  walker->trust_first_ = true;
  return walker;
}

std::optional<Entry> Walker::damaged(std::string why) {
  damage_ = Damage{segment_path(folder_, segment_), offset_, std::move(why)};
  return std::nullopt;
}

// Makes at least `wanted` bytes available in buffered(), or as many as the file still has.
Result<void> Walker::fill(std::size_t wanted) {
  if (buffered().size() >= wanted) return {};
  buffer_.erase(0, position_);
  position_ = 0;
  while (buffer_.size() < wanted) {
    const std::size_t before = buffer_.size();
    buffer_.resize(before + read_bytes);
    const ssize_t got = ::pread(file_.get(), buffer_.data() + before, read_bytes, static_cast<off_t>(offset_ + before));
    buffer_.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno != EINTR) return cannot("read", segment_path(folder_, segment_));
    if (got == 0) break;
  }
  return {};
}

Result<void> Walker::open_next_segment() {
  const std::uint32_t expected = segments_read_ == 0 ? 1 : segment_ + 1;
  const bool trusted = trust_first_ && segments_read_ == 0;
  segment_ = numbers_[next_number_++];
  offset_ = 0;
  position_ = 0;
  buffer_.clear();
  ++segments_read_;
  const auto path = segment_path(folder_, segment_);
  file_ = base::FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) return cannot("open", path);
  if (auto filled = fill(header_bytes); !filled) return filled;
  const auto header = decode_header(buffered().substr(0, header_bytes));
  if (!header || header->number != segment_) {
    damaged("the segment's header is damaged");
  } else if (trusted) {
    next_sequence_ = header->first_sequence;
    head_ = header->previous;
  } else if (segment_ != expected) {
    damaged("the segment before this one is missing");
  } else if (header->first_sequence != next_sequence_ || header->previous != head_) {
    damaged("the segment does not continue the one before: records are missing or altered");
  }
  if (damage_) return {};
  position_ = header_bytes;
  offset_ = header_bytes;
  return {};
}

// A crash can leave a file longer than what was written, filled with zeros.
Result<bool> Walker::only_zeros_left() {
  while (true) {
    if (!std::ranges::all_of(buffered(), [](char c) { return c == 0; })) return false;
    const std::uint64_t offset = offset_ + buffered().size();
    std::string more(read_bytes, '\0');
    const ssize_t got = ::pread(file_.get(), more.data(), more.size(), static_cast<off_t>(offset));
    if (got < 0) return cannot("read", segment_path(folder_, segment_));
    if (got == 0) return true;
    more.resize(static_cast<std::size_t>(got));
    buffer_ += more;
  }
}

// Fewer bytes left than a record needs: the end of the segment, or a record cut short.
Result<std::optional<Entry>> Walker::at_end_of_bytes() {
  if (!buffered().empty()) {
    damaged("the record is incomplete");
    damage_->torn = next_number_ == numbers_.size() && is_cut_short(buffered());
    return std::nullopt;
  }
  if (next_number_ == numbers_.size()) return std::nullopt;
  if (auto opened = open_next_segment(); !opened) return std::unexpected(std::move(opened.error()));
  return next();
}

Result<std::optional<Entry>> Walker::next() {
  if (damage_) return std::nullopt;
  if (segments_read_ == 0) return at_end_of_bytes();
  if (auto filled = fill(length_bytes); !filled) return std::unexpected(std::move(filled.error()));
  if (buffered().size() < length_bytes) return at_end_of_bytes();
  const auto length = get<std::uint32_t>(buffered(), 0);
  if (length == 0) {
    const auto zeros = only_zeros_left();
    if (!zeros) return std::unexpected(zeros.error());
    if (*zeros) return at_end_of_bytes();
  }
  if (length == 0 || length > max_body_bytes) return damaged("the record's length is impossible");
  const std::size_t total = length_bytes + length + hash_bytes;
  if (auto filled = fill(total); !filled) return std::unexpected(std::move(filled.error()));
  if (buffered().size() < total) return at_end_of_bytes();

  const std::string_view hashed = buffered().substr(0, length_bytes + length);
  const Digest hash = sha256(view(head_), hashed);
  if (hash != get_digest(buffered(), hashed.size()))
    return damaged("the record's hash does not follow from the record and the one before it");
  auto entry = decode(hashed.substr(length_bytes));
  if (!entry) return damaged("the record is not in canonical form");
  if (entry->sequence != next_sequence_) return damaged("the record has the wrong number");
  entry->hash = hash;
  head_ = hash;
  ++next_sequence_;
  position_ += total;
  offset_ += total;
  return std::optional<Entry>(std::move(*entry));
}

}  // namespace molly::audit
