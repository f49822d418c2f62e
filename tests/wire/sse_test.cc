#include "wire/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace molly::wire {
namespace {

using Chunks = std::vector<std::string>;

// "name|data" per event, "!" for an error.
std::string events_of(const Chunks& chunks, std::size_t limit = 1 << 20) {
  SseParser parser(limit);
  std::string all;
  for (const std::string& piece : chunks) {
    // Its own storage, gone after the loop: the parser must not look back.
    const auto chunk = std::make_unique<std::string>(piece);
    parser.feed(*chunk);
    while (true) {
      const auto event = parser.next();
      if (!event) return all + "!";
      if (!*event) break;
      all += "[" + std::string((*event)->name) + "|" + std::string((*event)->data) + "]";
    }
    chunk->assign(chunk->size(), '#');
  }
  return all;
}

struct Case {
  const char* stream;
  const char* events;
};

const std::vector<Case> cases{
    {"data: a\n\n", "[|a]"},
    {"data:a\n\n", "[|a]"},
    {"data:  a\n\n", "[| a]"},
    {"data: a\r\n\r\n", "[|a]"},
    {"data: a\r\rdata: b\r\r", "[|a][|b]"},
    {"data: a\r\n\n", "[|a]"},
    {"data: a\n\r\ndata: b\r\n\r", "[|a][|b]"},
    {"data: a\ndata: b\n\n", "[|a\nb]"},
    {"data: a\ndata:\ndata: c\n\n", "[|a\n\nc]"},
    {"data\n\n", "[|]"},
    {"data:\n\n", "[|]"},
    {": ping\n\ndata: a\n\n", "[|a]"},
    {"data: a\n: note\ndata: b\n\n", "[|a\nb]"},
    {"event: error\ndata: x\n\ndata: y\n\n", "[error|x][|y]"},
    {"event: lost\n\ndata: y\n\n", "[|y]"},
    {"id: 1\nretry: 5\nother: z\ndata: a\n\n", "[|a]"},
    {"\xEF\xBB\xBF"
     "data: a\n\ndata: b\n\n",
     "[|a][|b]"},
    {"\n\n\ndata: a:b\n\n", "[|a:b]"},
    {"data: cut off\n", ""},
    {"data: a\n\ndata: cut", "[|a]"},
};

TEST(Sse, reads_streams_as_the_standard_says) {
  for (const Case& c : cases) EXPECT_EQ(events_of({c.stream}), c.events) << c.stream;
}

TEST(Sse, gives_the_same_events_for_every_split_into_three_chunks) {
  for (const Case& c : cases) {
    const std::string stream = c.stream;
    for (std::size_t i = 0; i <= stream.size(); ++i) {
      for (std::size_t j = i; j <= stream.size(); ++j) {
        const Chunks chunks{stream.substr(0, i), stream.substr(i, j - i), stream.substr(j)};
        ASSERT_EQ(events_of(chunks), c.events) << stream << " split at " << i << " and " << j;
      }
    }
  }
}

TEST(Sse, gives_the_same_events_for_single_bytes) {
  for (const Case& c : cases) {
    Chunks bytes;
    for (const char* at = c.stream; *at != '\0'; ++at) bytes.emplace_back(1, *at);
    EXPECT_EQ(events_of(bytes), c.events) << c.stream;
  }
}

TEST(Sse, refuses_an_event_beyond_the_limit_however_it_comes) {
  EXPECT_EQ(events_of({"data: 0123456789\n\n"}, 8), "!");
  EXPECT_EQ(events_of({"data: 0123", "456789"}, 8), "!");
  EXPECT_EQ(events_of({"data: 01\ndata: 23\ndata: 45\n\n"}, 8), "[|01\n23\n45]");
  EXPECT_EQ(events_of({"data: 01\ndata: 23\ndata: 45\ndata: 67\n\n"}, 8), "!");
  EXPECT_EQ(events_of({": ok\n: ok\n: ok\ndata: 1\n\n"}, 8), "[|1]");
}

TEST(Sse, stays_failed) {
  SseParser parser(4);
  parser.feed("data: too long\n\n");
  EXPECT_FALSE(parser.next());
  parser.feed("d: 1\n\n");
  EXPECT_FALSE(parser.next());
}

TEST(Sse, tells_whether_a_stream_was_cut_off) {
  SseParser parser;
  EXPECT_TRUE(parser.between_events());
  parser.feed("data: a\n\n");
  EXPECT_TRUE(parser.next()->has_value());
  EXPECT_FALSE(parser.next()->has_value());
  EXPECT_TRUE(parser.between_events());
  parser.feed("data: b\n");
  EXPECT_FALSE(parser.next()->has_value());
  EXPECT_FALSE(parser.between_events());
}

}  // namespace
}  // namespace molly::wire
