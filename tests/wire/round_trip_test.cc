#include <gtest/gtest.h>

#include <glaze/json.hpp>
#include <random>

#include "fuzz/canonical.h"
#include "wire/openai.h"

// Whatever a client says leaves as it came: parse, then encode, is the same JSON value with the same numbers.
namespace molly::wire {
namespace {

// Makes requests as clients of this and of other dialects might: members in any order, present or not, null or empty,
// with unknown ones at every level.
class RequestGenerator {
 public:
  explicit RequestGenerator(std::uint32_t seed) : random_(seed) {}

  std::string chat() {
    std::vector<std::string> members = common();
    members.push_back(R"("messages":)" + list(1, 4, [this] { return message(); }));
    maybe(members, "tools", [this] { return list(0, 2, [this] { return tool(); }); });
    maybe(members, "tool_choice", [this] { return tool_choice(); });
    maybe(members, "parallel_tool_calls", [this] { return flag(); });
    maybe(members, "logprobs", [this] { return flag(); });
    maybe(members, "top_logprobs", [this] { return std::to_string(below(6)); });
    return object(std::move(members));
  }

  std::string completion() {
    std::vector<std::string> members = common();
    members.push_back(R"("prompt":)" + prompt());
    maybe(members, "suffix", [this] { return text(); });
    maybe(members, "echo", [this] { return flag(); });
    maybe(members, "logprobs", [this] { return std::to_string(below(6)); });
    maybe(members, "best_of", [this] { return std::to_string(1 + below(5)); });
    return object(std::move(members));
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool chance(std::size_t percent) { return below(100) < percent; }
  std::string flag() { return chance(50) ? "true" : "false"; }
  std::string one_of(std::initializer_list<const char*> choices) { return choices.begin()[below(choices.size())]; }

  std::string text() {
    return one_of({R"("")", R"("hello")", R"("caf\u00e9")", "\"caf\xC3\xA9\"", R"("a\"b\\c\/d\n\t\u0000\u001f")",
                   R"("\ud83d\ude00")", R"("a longer text that is beyond every small buffer of a string")"});
  }
  std::string number() {
    return one_of({"0", "1", "0.70", "-1.5", "1e2", "1E-2", "0.1000", "123456789012345678", "-0"});
  }
  std::string any(int depth = 0) {
    switch (below(depth > 2 ? 4 : 6)) {
      case 0: return "null";
      case 1: return flag();
      case 2: return number();
      case 3: return text();
      case 4: return list(0, 3, [&] { return any(depth + 1); });
      default: return object({R"("x":)" + any(depth + 1), R"("y z":)" + any(depth + 1)});
    }
  }

  template <class Make>
  std::string list(std::size_t least, std::size_t most, Make make) {
    std::string items;
    const std::size_t count = least + below(most - least + 1);
    for (std::size_t i = 0; i < count; ++i) items += (i > 0 ? space() + "," : "") + space() + make();
    return "[" + items + space() + "]";
  }
  std::string space() { return chance(10) ? one_of({" ", "\n", "\t ", "\r\n"}) : ""; }

  std::string object(std::vector<std::string> members) {
    std::ranges::shuffle(members, random_);
    std::string joined;
    for (const std::string& member : members) joined += (joined.empty() ? "" : ",") + space() + member + space();
    return "{" + joined + "}";
  }
  template <class Make>
  void maybe(std::vector<std::string>& members, const std::string& name, Make make, std::size_t nulls = 10) {
    if (!chance(40)) return;
    members.push_back("\"" + name + "\":" + (chance(nulls) ? "null" : make()));
  }
  void unknown(std::vector<std::string>& members) {
    if (chance(25)) members.push_back(R"("unknown_)" + std::to_string(below(1000)) + "\":" + any());
    if (chance(5)) members.push_back(R"("esc\u0061ped\n":)" + any());
  }

  std::vector<std::string> common() {
    std::vector<std::string> members;
    maybe(members, "model", [this] { return text(); });
    for (const char* name :
         {"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repeat_penalty"}) {
      maybe(members, name, [this] { return number(); });
    }
    maybe(members, "seed", [this] { return one_of({"0", "-5", "18446744073709551615"}); });
    maybe(members, chance(50) ? "max_tokens" : "max_completion_tokens",
          [this] { return one_of({"0", "1", "4096", "-1"}); });
    maybe(members, "stop", [this] { return chance(50) ? text() : list(0, 3, [this] { return text(); }); });
    maybe(members, "n", [this] { return std::to_string(1 + below(128)); });
    maybe(members, "stream", [this] { return flag(); });
    maybe(members, "stream_options", [this] { return stream_options(); });
    maybe(members, "logit_bias", [] { return std::string(R"({"50256":-100, "7":1.50})"); });
    maybe(members, "response_format", [this] {
      return one_of({R"({"type":"text"})", R"({"type":"json_object","schema":{}})", R"({"type":"grammar","x":1})"});
    });
    maybe(members, "reasoning_effort", [this] { return text(); });
    maybe(members, "user", [this] { return text(); });
    maybe(members, "metadata", [this] { return object({R"("k":)" + text()}); });
    maybe(members, "store", [this] { return flag(); });
    unknown(members);
    return members;
  }

  std::string stream_options() {
    std::vector<std::string> members;
    maybe(members, "include_usage", [this] { return flag(); });
    unknown(members);
    return object(std::move(members));
  }

  std::string message() {
    std::vector<std::string> members{R"("role":)" + one_of({"\"system\"", "\"developer\"", "\"user\"", "\"assistant\"",
                                                            "\"tool\"", "\"function\"", "\"critic\""})};
    maybe(members, "content", [this] { return chance(50) ? text() : list(0, 3, [this] { return part(); }); }, 20);
    for (const char* name : {"name", "tool_call_id", "reasoning_content", "refusal"}) {
      maybe(members, name, [this] { return text(); });
    }
    maybe(members, "tool_calls", [this] { return list(0, 2, [this] { return tool_call(); }); });
    unknown(members);
    return object(std::move(members));
  }

  std::string inner(std::vector<std::string> members) {
    unknown(members);
    return object(std::move(members));
  }

  std::string part() {
    std::vector<std::string> members;
    switch (below(6)) {
      case 0: members = {R"("type":"text")", R"("text":)" + text()}; break;
      case 1:
        members = {R"("type":"image_url")", R"("image_url":)" + inner({R"("url":)" + text(), R"("detail":)" + text()})};
        break;
      case 2: members = {R"("type":"input_audio")", R"("input_audio":)" + inner({R"("data":)" + text()})}; break;
      case 3:
        members = {R"("type":"file")", R"("file":)" + inner({R"("file_id":"f")", R"("filename":)" + text()})};
        break;
      case 4: members = {R"("type":"refusal")", R"("refusal":)" + text()}; break;
      default: members = {R"("type":"hologram")", R"("rays":)" + any()};
    }
    return inner(std::move(members));
  }

  std::string tool_call() {
    std::vector<std::string> members;
    maybe(members, "id", [this] { return text(); });
    if (chance(30)) {
      members.push_back(R"("type":"custom")");
      members.push_back(R"("custom":)" + inner({R"("name":)" + text(), R"("input":)" + text()}));
    } else {
      if (chance(80)) members.push_back(R"("type":"function")");
      members.push_back(R"("function":)" + inner({R"("name":)" + text(), R"("arguments":)" + text()}));
    }
    return inner(std::move(members));
  }

  std::string tool() {
    if (chance(20)) return inner({R"("type":"custom")", R"("custom":)" + any()});
    std::vector<std::string> members{R"("name":"f")"};
    maybe(members, "description", [this] { return text(); });
    maybe(members, "parameters", [this] { return object({R"("type":"object")", R"("properties":)" + any()}); });
    maybe(members, "strict", [this] { return flag(); });
    return inner({R"("type":"function")", R"("function":)" + inner(std::move(members))});
  }

  std::string tool_choice() {
    return one_of({"\"none\"", "\"auto\"", "\"required\"", "\"any\"", R"({"type":"function","function":{"name":"f"}})",
                   R"({"type":"function","function":{"name":"f","x":1}})", R"({"type":"allowed_tools","tools":[]})",
                   "{}"});
  }

  std::string prompt() {
    return one_of({R"("once")", R"("")", R"(["a"])", R"(["a","b\n"])", "[1, 2,3]", "[[1],[2 ,3]]"});
  }

  std::mt19937 random_;
};

TEST(RoundTrip, chat_requests_leave_as_they_came) {
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
    const std::string body = RequestGenerator(seed).chat();
    const auto request = parse_chat_request(body);
    ASSERT_TRUE(request) << request.error().message << "\n" << body;
    const std::string encoded = encode_request(*request);
    ASSERT_EQ(canonical(encoded), canonical(body)) << body;
    ASSERT_FALSE(glz::validate_json(encoded)) << encoded;
  }
}

TEST(RoundTrip, completion_requests_leave_as_they_came) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    const std::string body = RequestGenerator(seed).completion();
    const auto request = parse_completion_request(body);
    ASSERT_TRUE(request) << request.error().message << "\n" << body;
    ASSERT_EQ(canonical(encode_request(*request)), canonical(body)) << body;
  }
}

TEST(RoundTrip, no_prefix_of_a_request_is_a_request) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const std::string body = RequestGenerator(seed).chat();
    for (std::size_t length = 0; length < body.size(); ++length) {
      ASSERT_FALSE(parse_chat_request(body.substr(0, length))) << body.substr(0, length);
    }
  }
}

}  // namespace
}  // namespace molly::wire
