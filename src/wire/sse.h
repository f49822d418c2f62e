#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace molly::wire {

// One event of a text/event-stream. The views are valid until the next call on the parser that gave it.
struct SseEvent {
  std::string_view data;  // the data lines joined by '\n'
  std::string_view name;  // the "event:" field; empty means "message"
};

// Incremental parser of server-sent events (WHATWG HTML, section 9.2.6): any chunking, lines ended by LF, CR or
// CRLF, comments, a byte order mark. "id" and "retry" are ignored, as are events without data. An event that the
// stream's end cuts off is never given out.
//
// Events that lie whole within one chunk are given out without copying. Usage: feed() a chunk, then next() until it
// has no more, then the next chunk. Not thread-safe.
class SseParser {
 public:
  explicit SseParser(std::size_t max_event_bytes = 8 * 1024 * 1024) : max_event_bytes_(max_event_bytes) {}

  // The chunk must stay in place until next() has returned nullopt.
  void feed(std::string_view chunk);

  // The next complete event, nullopt when more bytes are needed. payload_too_large when one event's lines exceed
  // the limit; the parser then stays failed.
  Result<std::optional<SseEvent>> next();

  // True when the bytes so far end between two events: a stream that ends elsewhere was cut off.
  bool between_events() const;

 private:
  struct Line {
    std::string_view text;
    bool in_chunk;  // not in line_
  };

  std::optional<Line> take_line();
  void take_field(const Line& line);
  void append_data(const Line& value);
  void keep_data();
  void start_event();

  std::size_t max_event_bytes_;
  std::string_view chunk_;  // not yet read
  std::string line_;        // start of a line whose end is in a later chunk
  std::string joined_;      // data that does not lie in one place of the chunk
  std::string name_;
  std::string_view data_;  // into the chunk or joined_
  bool has_data_ = false;
  bool data_in_chunk_ = false;
  bool line_taken_ = false;  // line_ was whole and may be dropped
  bool given_out_ = false;   // the last event's views may be dropped
  bool after_carriage_return_ = false;
  bool at_start_ = true;
  bool failed_ = false;
};

}  // namespace molly::wire
