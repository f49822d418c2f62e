#include "wire/sse.h"

namespace molly::wire {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::size_t find_line_end(std::string_view text) {
  const std::size_t feed = text.find('\n');
  const std::size_t carriage_return = text.substr(0, feed).find('\r');
  return carriage_return != std::string_view::npos ? carriage_return : feed;
}

}  // namespace

void SseParser::feed(std::string_view chunk) { chunk_ = chunk; }

Result<std::optional<SseEvent>> SseParser::next() {
  if (given_out_) start_event();
  while (!failed_) {
    const std::optional<Line> line = take_line();
    if (!line) {
      keep_data();
      if (!failed_) return std::nullopt;
      break;
    }
    if (!line->text.empty()) {
      take_field(*line);
    } else if (has_data_) {
      given_out_ = true;
      return SseEvent{data_, name_};
    } else {
      start_event();
    }
  }
  return failure(ErrorCode::payload_too_large, "an event of the stream is larger than the limit");
}

bool SseParser::between_events() const {
  return chunk_.empty() && line_.empty() && name_.empty() && (!has_data_ || given_out_);
}

std::optional<SseParser::Line> SseParser::take_line() {
  if (line_taken_) line_.clear();
  line_taken_ = false;
  if (after_carriage_return_ && !chunk_.empty()) {
    if (chunk_.front() == '\n') chunk_.remove_prefix(1);
    after_carriage_return_ = false;
  }
  const std::size_t end = find_line_end(chunk_);
  const std::string_view piece = chunk_.substr(0, end);
  if (line_.size() + piece.size() > max_event_bytes_) failed_ = true;
  if (failed_) return std::nullopt;
  if (end == std::string_view::npos) {
    line_.append(piece);
    chunk_ = {};
    return std::nullopt;
  }
  after_carriage_return_ = chunk_[end] == '\r';
  chunk_.remove_prefix(end + 1);
  Line line{piece, true};
  if (!line_.empty()) {
    line_.append(piece);
    line_taken_ = true;
    line = Line{line_, false};
  }
  if (at_start_ && line.text.starts_with(byte_order_mark)) line.text.remove_prefix(byte_order_mark.size());
  at_start_ = false;
  return line;
}

void SseParser::take_field(const Line& line) {
  const std::size_t colon = line.text.find(':');
  const std::string_view field = line.text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") append_data({value, line.in_chunk});
  if (field == "event") name_ = value;
  if (data_.size() + name_.size() > max_event_bytes_) failed_ = true;
}

void SseParser::append_data(const Line& value) {
  if (!has_data_ && value.in_chunk) {
    data_ = value.text;
    data_in_chunk_ = true;
  } else {
    keep_data();
    if (has_data_) joined_ += '\n';
    joined_ += value.text;
    data_ = joined_;
  }
  has_data_ = true;
}

// The chunk is about to go away, or data must grow.
void SseParser::keep_data() {
  if (!has_data_ || !data_in_chunk_) return;
  joined_.assign(data_);
  data_ = joined_;
  data_in_chunk_ = false;
}

void SseParser::start_event() {
  joined_.clear();
  name_.clear();
  data_ = {};
  has_data_ = false;
  data_in_chunk_ = false;
  given_out_ = false;
}

}  // namespace molly::wire
