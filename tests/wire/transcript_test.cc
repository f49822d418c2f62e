#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/canonical.h"
#include "wire/openai.h"
#include "wire/sse.h"

// Plays the files in transcripts/: from a target's bytes to the client's, streamed and whole.
namespace molly::wire {
namespace {

struct Transcript {
  Endpoint endpoint = Endpoint::chat;
  UsageInStream usage = UsageInStream::not_asked;
  std::string upstream;
  std::string client;
  std::string whole;
};

const AnswerIdentity identity{"ID", 1, "auto"};

std::string section(const std::string& file, const std::string& name) {
  const std::string title = "--- " + name + "\n";
  const std::size_t start = file.find(title);
  if (start == std::string::npos) return {};
  const std::size_t body = start + title.size();
  const std::size_t next = file.find("\n--- ", body);
  return file.substr(body, next == std::string::npos ? next : next + 1 - body);
}

Transcript load(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  Transcript transcript;
  if (file.starts_with("endpoint: completions")) transcript.endpoint = Endpoint::completions;
  if (file.contains("\nusage: asked\n")) transcript.usage = UsageInStream::asked;
  transcript.upstream = section(file, "upstream");
  transcript.client = section(file, "client");
  transcript.whole = section(file, "whole");
  return transcript;
}

struct Outcome {
  std::string client;
  std::string whole;
};

Outcome play(const Transcript& transcript, std::size_t chunk_size) {
  SseParser sse;
  ChunkParser chunks(transcript.endpoint);
  ChunkRenderer renderer(transcript.endpoint, identity, transcript.usage);
  AnswerBuilder builder(transcript.endpoint);
  Outcome outcome;
  for (std::size_t at = 0; at < transcript.upstream.size(); at += chunk_size) {
    sse.feed(std::string_view(transcript.upstream).substr(at, chunk_size));
    for (auto event = sse.next().value(); event; event = sse.next().value()) {
      for (Event& typed : chunks.parse(event->data, event->name).value()) {
        outcome.client += renderer.render(typed);
        builder.add(std::move(typed));
      }
    }
  }
  EXPECT_TRUE(chunks.ended());
  if (!builder.error()) outcome.whole = builder.render(identity);
  return outcome;
}

TEST(Transcripts, reach_the_client_as_written_in_any_chunks) {
  std::size_t played = 0;
  for (const auto& file : std::filesystem::directory_iterator(MOLLY_TEST_DATA "/transcripts")) {
    if (file.path().extension() != ".txt") continue;
    ++played;
    const Transcript transcript = load(file.path());
    for (const std::size_t chunk_size : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
      const Outcome outcome = play(transcript, chunk_size);
      EXPECT_EQ(outcome.client, transcript.client) << file.path();
      if (transcript.whole.empty()) {
        EXPECT_EQ(outcome.whole, "") << file.path();
      } else {
        EXPECT_EQ(canonical(outcome.whole), canonical(transcript.whole)) << file.path();
      }
    }
  }
  EXPECT_GE(played, 8u);
}

// A whole answer, read as one and streamed to a client, makes the same whole answer again.
TEST(Transcripts, whole_answers_survive_reading_and_writing) {
  for (const auto& file : std::filesystem::directory_iterator(MOLLY_TEST_DATA "/transcripts")) {
    const Transcript transcript = load(file.path());
    if (transcript.whole.empty()) continue;
    const bool is_chat = transcript.endpoint == Endpoint::chat;
    auto events = is_chat ? parse_chat_answer(transcript.whole) : parse_completion_answer(transcript.whole);
    ASSERT_TRUE(events) << events.error().message;
    AnswerBuilder builder(transcript.endpoint);
    for (Event& event : *events) builder.add(std::move(event));
    EXPECT_TRUE(builder.done());
    EXPECT_EQ(canonical(builder.render(identity)), canonical(transcript.whole)) << file.path();
  }
}

}  // namespace
}  // namespace molly::wire
