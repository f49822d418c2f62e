#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/text/chat_template.h"
#include "engine/text/vocabulary.h"
#include "training/data/example.h"

namespace molly::training {

// What a row with more tokens than the context is.
enum class LongExamples : std::uint8_t {
  refuse,     // an error
  leave_out,  // counted and left out
  truncate,   // counted and cut at the end; left out where nothing that counts is left of it
};

// What a method can learn from.
enum class RowKind : std::uint8_t {
  conversation,            // with at least one answer
  conversation_or_prompt,  // prompts too: another model scores what is sampled for them
  preference,
};

struct DataOptions {
  RowKind rows = RowKind::conversation;
  double held_out_share = 0.1;  // of the keys, 0 to below 1; rows that say their "split" are not counted in
  std::size_t context_tokens = 0;
  LongExamples long_examples = LongExamples::refuse;
  std::size_t min_train = 8;  // examples; fewer are an error
  // Side file with one line of teacher scores for each row of all files, in their order; "null" for a row without.
  // Empty: scores stand in the rows.
  std::filesystem::path teacher_scores;
};

// What is told to people before training starts.
struct DataReport {
  std::size_t rows = 0;
  std::size_t train_tokens = 0;
  std::size_t train_counted_tokens = 0;
  std::size_t held_out_tokens = 0;
  std::size_t train_duplicates = 0;  // examples whose tokens an earlier one of the same part has
  std::size_t held_out_duplicates = 0;
  std::size_t left_out = 0;
  std::size_t truncated = 0;
  std::size_t divided_conversations = 0;  // into one example for each turn, see ChatTokens
};

// Either examples or pairs, by RowKind.
struct DataPart {
  std::vector<Example> examples;
  std::vector<Pair> pairs;

  std::size_t size() const { return examples.size() + pairs.size(); }
};

struct DataSet {
  std::vector<std::filesystem::path> files;
  DataPart train;
  DataPart held_out;
  DataReport report;
  std::string digest;  // SHA-256, in hexadecimal, over all examples' tokens, counts and part, in the files' order
};

// Reads JSONL files (see ChatRow) and divides their rows by key: a key is held out when its SHA-256, as a fraction, is
// below the share, so that it stays where it is whatever else the data holds. A row without key has the digest of its
// first prompt as its key.
//
// Blocks on the disk. invalid_request names file and line: a row that cannot be read or rendered, one of another kind,
// a key or an exact duplicate on both sides of the split, rows longer than the context; or says that there are too few.
// io_failed.
Result<DataSet> read_data(const std::vector<std::filesystem::path>& files, const engine::Vocabulary& vocabulary,
                          const engine::ChatTemplate& chat_template, const DataOptions& options);

// Whether a key is held out at such a share.
bool is_held_out(std::string_view key, double share);

}  // namespace molly::training
