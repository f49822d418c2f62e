// Any data of a stream's events, one a line, gives events or a typed error; what a client gets of them is JSON again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "canonical.h"
#include "wire/openai.h"

namespace {

using namespace molly;

const wire::AnswerIdentity identity{"ID", 1, "auto"};

void expect_json(std::string_view text) {
  if (wire::canonical(text).starts_with("not JSON")) std::abort();
}

// Each event of what the client gets must be one line of JSON.
void expect_events(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find("\n\n");
    if (!bytes.starts_with("data: ") || end == std::string_view::npos) std::abort();
    const std::string_view data = bytes.substr(6, end - 6);
    if (data != "[DONE]") expect_json(data);
    bytes.remove_prefix(end + 2);
  }
}

void stream(std::string_view text, Endpoint endpoint) {
  wire::ChunkParser parser(endpoint);
  wire::ChunkRenderer renderer(endpoint, identity, wire::UsageInStream::asked);
  wire::AnswerBuilder builder(endpoint);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    auto events = parser.parse(text.substr(0, end));
    if (!events) return;
    for (Event& event : *events) {
      expect_events(renderer.render(event));
      builder.add(std::move(event));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  expect_json(builder.render(identity));
}

void whole(Result<std::vector<Event>> events, Endpoint endpoint) {
  if (!events) return;
  wire::AnswerBuilder builder(endpoint);
  for (Event& event : *events) builder.add(std::move(event));
  expect_json(builder.render(identity));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stream(text, Endpoint::chat);
  stream(text, Endpoint::completions);
  whole(wire::parse_chat_answer(text), Endpoint::chat);
  whole(wire::parse_completion_answer(text), Endpoint::completions);
  expect_json(wire::render_error(wire::parse_error_answer(500, text, "")));
  return 0;
}
