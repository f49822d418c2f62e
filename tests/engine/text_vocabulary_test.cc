#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <fstream>
#include <random>

#include "../temporary_folder.h"
#include "engine/text/utf8.h"
#include "text_model.h"

namespace molly::engine {
namespace {

std::string bytes_of_embedded_model() {
  std::ifstream in(MOLLY_SOURCE_DIR "/models/nano.gguf", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Result<std::unique_ptr<Vocabulary>> open_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  return Vocabulary::open(path);
}

std::string replaced(std::string bytes, const std::string& what, const std::string& with) {
  const std::size_t at = bytes.find(what);
  return at == std::string::npos ? bytes : bytes.replace(at, what.size(), with);
}

TEST(TextVocabulary, text_survives_tokens_and_back) {
  const Vocabulary& vocabulary = embedded_vocabulary();
  for (const std::string text : {"", "Hello, world!\n", "Zürich 你好 🙂", "  two  spaces\t", "a\r\nb"}) {
    const auto tokens = vocabulary.tokenize(text, SpecialTokens::as_text, Beginning::bare);
    EXPECT_EQ(vocabulary.detokenize(tokens), text);
  }
}

TEST(TextVocabulary, random_bytes_give_tokens_of_repaired_text) {
  const Vocabulary& vocabulary = embedded_vocabulary();
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text(random() % 64, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const auto tokens = vocabulary.tokenize(text, SpecialTokens::as_text, Beginning::bare);
    EXPECT_EQ(vocabulary.detokenize(tokens), repaired_utf8(text));
  }
}

TEST(TextVocabulary, special_tokens_are_parsed_and_rendered_only_when_asked) {
  const Vocabulary& vocabulary = embedded_vocabulary();
  const Token end = vocabulary.end().value();
  const std::string name = vocabulary.piece(end, SpecialTokens::parsed);
  ASSERT_FALSE(name.empty());
  EXPECT_EQ(vocabulary.piece(end), "");
  EXPECT_EQ(vocabulary.tokenize(name, SpecialTokens::parsed, Beginning::bare), std::vector<Token>{end});
  const auto as_text = vocabulary.tokenize(name, SpecialTokens::as_text, Beginning::bare);
  EXPECT_THAT(as_text, testing::Not(testing::Contains(end)));
  EXPECT_EQ(vocabulary.detokenize(as_text), name);
  EXPECT_TRUE(vocabulary.is_end(end));
  EXPECT_FALSE(vocabulary.is_end(0));
  EXPECT_THAT(vocabulary.end_tokens(), testing::Contains(end));
}

TEST(TextVocabulary, a_number_that_is_no_token_is_nothing) {
  const Vocabulary& vocabulary = embedded_vocabulary();
  EXPECT_EQ(vocabulary.piece(-1), "");
  EXPECT_EQ(vocabulary.piece(static_cast<Token>(vocabulary.size())), "");
  EXPECT_FALSE(vocabulary.is_end(-1));
}

TEST(TextVocabulary, two_openings_of_a_file_are_the_same_vocabulary_and_another_text_is_not) {
  const Vocabulary& vocabulary = embedded_vocabulary();
  const std::string bytes = bytes_of_embedded_model();
  const auto same = open_bytes(bytes);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_TRUE(vocabulary.can_draft_for(**same));
  const std::string end = vocabulary.piece(vocabulary.end().value(), SpecialTokens::parsed);
  const std::size_t at = bytes.find(end, bytes.find("tokenizer.ggml.tokens"));
  ASSERT_NE(at, std::string::npos);
  std::string changed = bytes;
  changed[at + 1] = 'Q';
  const auto other = open_bytes(changed);
  ASSERT_TRUE(other) << other.error().message;
  const auto difference = vocabulary.can_draft_for(**other);
  ASSERT_FALSE(difference);
  EXPECT_THAT(difference.error().message,
              testing::HasSubstr(std::format("differ first in token {}: '{}'", vocabulary.end().value(), end)));
}

TEST(TextVocabulary, what_is_no_model_is_a_typed_error) {
  EXPECT_EQ(Vocabulary::open("/nowhere/model.gguf").error().code, ErrorCode::io_failed);
  const std::string bytes = bytes_of_embedded_model();
  EXPECT_EQ(open_bytes("").error().code, ErrorCode::invalid_request);
  for (const std::size_t length : {4UZ, 100UZ, 20'000UZ, bytes.size() - 1}) {
    EXPECT_EQ(open_bytes(bytes.substr(0, length)).error().code, ErrorCode::invalid_request) << length;
  }
}

TEST(TextVocabulary, a_file_without_a_known_tokenizer_is_refused) {
  const std::string bytes = bytes_of_embedded_model();
  const auto unnamed = open_bytes(replaced(bytes, "tokenizer.ggml.model", "tokenizer.ggml.mode_"));
  EXPECT_THAT(unnamed.error().message, testing::HasSubstr("no tokenizer"));
  const auto without = open_bytes(replaced(bytes, "tokenizer.ggml.tokens", "tokenizer.ggml.token_"));
  EXPECT_THAT(without.error().message, testing::HasSubstr("no tokens"));
  const auto unknown = open_bytes(replaced(bytes, std::string("gpt2"), std::string("abcd")));
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("does not know"));
}

}  // namespace
}  // namespace molly::engine
