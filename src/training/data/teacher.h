#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "wire/json_reader.h"

namespace molly::training {

// What a teacher thinks of an example: for every token that counts, in order, the k likeliest tokens with their natural
// log-probabilities, and how much probability is left for all others. Row i is at [i * top_k, (i + 1) * top_k).
//
// In a data file, as the member "teacher" of a row, or as a line of a side file:
//   {"k":2,"tokens":[[17,4],[9,250]],"logprobs":[[-0.1,-2.5],[-0.7,-0.8]],"rest":[0.013,0.054]}
// "rest" may be left out: then it is what the log-probabilities leave of 1.
struct TeacherScores {
  std::uint32_t top_k = 0;
  std::vector<std::int32_t> tokens;
  std::vector<float> log_probabilities;
  std::vector<float> rest;  // one number for each row, 0 to 1

  std::size_t rows() const { return rest.size(); }
  bool operator==(const TeacherScores&) const = default;
};

inline constexpr std::uint32_t max_teacher_top_k = 1024;
// What sums of rounded probabilities may be off by.
inline constexpr double teacher_mass_tolerance = 1e-3;

// Reads and checks one value; what is wrong is the reader's failure. Every row has k different tokens of the
// vocabulary, log-probabilities of at most 0, and mass that sums to 1 (to at most 1 where rest is not said).
TeacherScores read_teacher_scores(wire::JsonReader& in, std::uint32_t vocabulary_size);
// invalid_request with the member's path.
Result<TeacherScores> parse_teacher_scores(std::string_view json, std::uint32_t vocabulary_size);
std::string teacher_scores_json(const TeacherScores& scores);

}  // namespace molly::training
