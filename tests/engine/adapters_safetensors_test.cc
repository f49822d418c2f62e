#include "engine/adapters/safetensors.h"

#include <gmock/gmock.h>

#include "adapters_file_writer.h"

namespace molly::engine {
namespace {

using testing::HasSubstr;

std::string refusal_of(std::string_view header, std::size_t numbers) {
  const auto tensors = parse_safetensors(*bytes_in_memory(safetensors(header, counting(numbers))));
  if (tensors) return "accepted";
  EXPECT_EQ(tensors.error().code, ErrorCode::invalid_request);
  return tensors.error().message;
}

TEST(SafeTensors, gives_names_types_shapes_and_places) {
  const auto bytes = safetensors({matrix("one", 2, 3), matrix("two", 1, 1)});
  const auto tensors = parse_safetensors(*bytes_in_memory(bytes));
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2U);
  EXPECT_EQ((*tensors)[0].name, "one");
  EXPECT_EQ((*tensors)[0].dtype, "F32");
  EXPECT_THAT((*tensors)[0].shape, testing::ElementsAre(2, 3));
  EXPECT_EQ((*tensors)[0].offset, bytes.size() - 28);
  EXPECT_EQ((*tensors)[1].offset, bytes.size() - 4);
}

TEST(SafeTensors, tensors_may_be_listed_in_any_order) {
  EXPECT_EQ(refusal_of(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                       R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                       2),
            "accepted");
}

TEST(SafeTensors, refuses_places_that_are_wrong) {
  const auto two = [](std::string_view first, std::string_view second, std::size_t numbers) {
    return refusal_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(first) +
                          R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(second) + "}}",
                      numbers);
  };
  EXPECT_EQ(two("[0,8]", "[8,16]", 4), "accepted");
  EXPECT_THAT(two("[0,8]", "[4,12]", 4), HasSubstr("overlap"));
  EXPECT_THAT(two("[0,8]", "[0,8]", 4), HasSubstr("overlap"));
  EXPECT_THAT(two("[0,8]", "[12,20]", 5), HasSubstr("bytes of no tensor"));
  EXPECT_THAT(two("[0,8]", "[8,16]", 5), HasSubstr("bytes of no tensor"));
  EXPECT_THAT(two("[0,8]", "[8,16]", 3), HasSubstr("cut off"));
  EXPECT_THAT(two("[0,8]", "[16,8]", 4), HasSubstr("size of its shape"));
  EXPECT_THAT(two("[0,8]", "[8,12]", 3), HasSubstr("size of its shape"));
  EXPECT_THAT(two("[0,8]", "[18446744073709551608,18446744073709551615]", 3), HasSubstr("size of its shape"));
  EXPECT_THAT(two("[0,8]", "[8]", 3), HasSubstr("two numbers"));
  EXPECT_THAT(two("[0,8]", "[-1,8]", 3), HasSubstr("not negative"));
}

TEST(SafeTensors, refuses_shapes_that_no_file_can_hold) {
  const auto shaped = [](std::string_view shape) {
    return refusal_of(R"({"a":{"dtype":"F32","shape":)" + std::string(shape) + R"(,"data_offsets":[0,0]}})", 0);
  };
  EXPECT_EQ(shaped("[0,5]"), "accepted");
  EXPECT_THAT(shaped("[4294967296,4294967296]"), HasSubstr("impossible size"));
  EXPECT_THAT(shaped("[1,1,1,1,1]"), HasSubstr("too many dimensions"));
  EXPECT_THAT(shaped("[1.5]"), HasSubstr("whole number"));
}

TEST(SafeTensors, refuses_headers_that_are_wrong) {
  EXPECT_EQ(refusal_of("{}", 0), "accepted");
  EXPECT_THAT(refusal_of("", 0), HasSubstr("header is wrong"));
  EXPECT_THAT(refusal_of("[]", 0), HasSubstr("must be an object"));
  EXPECT_THAT(refusal_of(R"({"a":{"dtype":"F32","shape":[1]}})", 1), HasSubstr("a.data_offsets is missing"));
  EXPECT_THAT(refusal_of(R"({"a":{"dtype":"X","shape":[1],"data_offsets":[0,4]}})", 1),
              HasSubstr("type X is not known"));
  const std::string_view twice = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  EXPECT_THAT(refusal_of(twice, 2), HasSubstr("twice"));
}

TEST(SafeTensors, refuses_lengths_that_are_wrong) {
  auto bytes = safetensors("{}", {});
  bytes[0] = 3;
  EXPECT_THAT(parse_safetensors(*bytes_in_memory(bytes)).error().message, HasSubstr("cut off"));
  bytes[7] = 0xff;
  EXPECT_THAT(parse_safetensors(*bytes_in_memory(bytes)).error().message, HasSubstr("too long"));
}

TEST(SafeTensors, refuses_every_truncation) {
  const auto bytes = safetensors(small_peft_matrices());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_safetensors(*bytes_in_memory({bytes.begin(), bytes.begin() + static_cast<long>(length)})))
        << length;
  }
}

}  // namespace
}  // namespace molly::engine
