#include <gtest/gtest.h>

#include "fuzz/canonical.h"
#include "wire/openai.h"

namespace molly::wire {
namespace {

using std::chrono::milliseconds;

TEST(Errors, have_the_dialects_shape) {
  EXPECT_EQ(render_error({ErrorCode::invalid_request, "n must be at least 1", "n"}),
            R"({"error":{"message":"n must be at least 1","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(render_error({ErrorCode::forbidden, "no", ""}),
            R"({"error":{"message":"no","type":"permission_error","param":null,"code":"policy_refused"}})");
  EXPECT_TRUE(render_error({ErrorCode::internal, "x", ""}, "budget_error").contains(R"("type":"budget_error")"));
}

TEST(Errors, have_statuses_that_clients_act_on) {
  EXPECT_EQ(http_status(ErrorCode::invalid_request), 400);
  EXPECT_EQ(http_status(ErrorCode::unauthenticated), 401);
  EXPECT_EQ(http_status(ErrorCode::forbidden), 403);
  EXPECT_EQ(http_status(ErrorCode::not_found), 404);
  EXPECT_EQ(http_status(ErrorCode::rate_limited), 429);
  EXPECT_EQ(http_status(ErrorCode::upstream_failed), 502);
  EXPECT_EQ(http_status(ErrorCode::overloaded), 503);
  EXPECT_EQ(http_status(ErrorCode::timeout), 504);
  EXPECT_EQ(http_status(ErrorCode::internal), 500);
}

TEST(UpstreamErrors, are_typed_by_status_and_code) {
  const auto code = [](int status, std::string_view body) { return parse_error_answer(status, body, "").code; };
  EXPECT_EQ(code(400, "{}"), ErrorCode::invalid_request);
  EXPECT_EQ(code(400, R"({"error":{"code":"context_length_exceeded"}})"), ErrorCode::context_length_exceeded);
  EXPECT_EQ(code(400, R"({"error":{"code":400,"type":"exceed_context_size_error"}})"),
            ErrorCode::context_length_exceeded);
  EXPECT_EQ(code(400, R"({"error":{"code":"unsupported_parameter"}})"), ErrorCode::unsupported_parameter);
  EXPECT_EQ(code(401, ""), ErrorCode::upstream_failed);
  EXPECT_EQ(code(404, ""), ErrorCode::upstream_failed);
  EXPECT_EQ(code(413, ""), ErrorCode::payload_too_large);
  EXPECT_EQ(code(429, ""), ErrorCode::rate_limited);
  EXPECT_EQ(code(500, "<html>"), ErrorCode::upstream_failed);
  EXPECT_EQ(code(503, ""), ErrorCode::unavailable);
  EXPECT_EQ(code(504, ""), ErrorCode::timeout);
}

TEST(UpstreamErrors, read_every_usual_body) {
  const auto message = [](std::string_view body) { return parse_error_answer(500, body, "").message; };
  const std::string status = "the target answered with status 500";
  EXPECT_EQ(message(R"({"error":{"message":"broken","type":null,"param":["x"],"code":-1}})"), status + ": broken");
  EXPECT_EQ(message(R"({"error":"broken"})"), status + ": broken");
  EXPECT_EQ(message(R"({"detail":"broken"})"), status + ": broken");
  EXPECT_EQ(message("Bad\ngateway"), status + ": Bad gateway");
  EXPECT_EQ(message("<html>Bad gateway</html>"), status);
  EXPECT_EQ(message("\x01\x02"), status);
  EXPECT_EQ(message(R"({"error":{"message":"cut)"), status);
}

TEST(UpstreamErrors, quote_at_most_300_characters) {
  std::string long_text;
  for (int i = 0; i < 500; ++i) long_text += "\xC3\xA9";
  const Error error = parse_error_answer(400, R"({"error":{"message":")" + long_text + "\"}}", "");
  EXPECT_TRUE(error.message.ends_with("\xC3\xA9..."));
  EXPECT_LT(error.message.size(), 2 * 300 + 60u);
}

TEST(UpstreamErrors, carry_the_wait_that_was_asked_for) {
  const auto wait = [](std::string_view header) { return parse_error_answer(429, "", header).retry_after; };
  EXPECT_EQ(wait("2"), milliseconds(2000));
  EXPECT_EQ(wait("0.5"), milliseconds(500));
  EXPECT_EQ(wait("999999999"), milliseconds(86400000));
  for (const char* header : {"", "-1", "soon", "2x", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"}) {
    EXPECT_EQ(wait(header), std::nullopt) << header;
  }
  EXPECT_EQ(parse_error_answer(500, "", "2").retry_after, std::nullopt);
}

TEST(Models, are_listed_and_read_back) {
  const std::vector<ModelEntry> models{{"a", 5, "molly", {}}, {"b", 0, "", {{"max_model_len", {"4096"}}}}};
  const std::string list = render_model_list(models);
  EXPECT_EQ(list, R"({"object":"list","data":[{"id":"a","object":"model","created":5,"owned_by":"molly"},)"
                  R"({"id":"b","object":"model","created":0,"owned_by":"","max_model_len":4096}]})");
  const auto read = parse_model_list(list);
  ASSERT_TRUE(read);
  EXPECT_EQ(render_model_list(*read), list);
  EXPECT_EQ(render_model(models[0]), R"({"id":"a","object":"model","created":5,"owned_by":"molly"})");
}

TEST(Models, must_be_a_list_of_names) {
  for (const char* body : {"", "[]", "{}", R"({"data":null})", R"({"data":[{}]})", R"({"data":[{"id":1}]})"}) {
    EXPECT_FALSE(parse_model_list(body)) << body;
  }
}

}  // namespace
}  // namespace molly::wire
