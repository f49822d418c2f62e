#include "training/data/teacher.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <span>

#include "base/json_writer.h"

namespace molly::training {
namespace {

using wire::JsonReader;

struct Reading {
  TeacherScores scores;
  std::size_t token_rows = 0;
  std::size_t probability_rows = 0;
  bool has_k = false;
  bool has_rest = false;
};

// Calls read_number for each element of each row and says how many rows there are.
template <class ReadNumber>
std::size_t read_rows(JsonReader& in, const Reading& reading, ReadNumber&& read_number) {
  std::size_t rows = 0;
  if (!reading.has_k) in.fail("must come after k");
  in.array([&](std::uint32_t) {
    std::uint32_t count = 0;
    in.array([&](std::uint32_t) {
      read_number();
      ++count;
    });
    if (in.ok() && count != reading.scores.top_k) {
      in.fail(std::format("has {} elements, k is {}", count, reading.scores.top_k));
    }
    ++rows;
  });
  return rows;
}

float log_probability(JsonReader& in) {
  const double value = in.number().value;
  if (in.ok() && !(value <= 0)) in.fail("must be at most 0: it is the logarithm of a probability");
  return static_cast<float>(value);
}

float rest_mass(JsonReader& in) {
  const double value = in.number().value;
  if (in.ok() && !(value >= 0 && value <= 1)) in.fail("must be from 0 to 1");
  return static_cast<float>(value);
}

void read_member(JsonReader& in, Reading& reading, std::string_view key, std::uint32_t vocabulary_size) {
  TeacherScores& scores = reading.scores;
  if (key == "k") {
    if (reading.has_k) return in.fail("is given twice");
    scores.top_k = static_cast<std::uint32_t>(in.unsigned_integer(max_teacher_top_k));
    if (in.ok() && scores.top_k == 0) return in.fail("must be at least 1");
    reading.has_k = true;
  } else if (key == "tokens") {
    if (!scores.tokens.empty()) return in.fail("is given twice");
    reading.token_rows = read_rows(in, reading, [&] {
      scores.tokens.push_back(static_cast<std::int32_t>(in.unsigned_integer(vocabulary_size - 1)));
    });
  } else if (key == "logprobs") {
    if (!scores.log_probabilities.empty()) return in.fail("is given twice");
    reading.probability_rows = read_rows(in, reading, [&] { scores.log_probabilities.push_back(log_probability(in)); });
  } else if (key == "rest") {
    if (reading.has_rest) return in.fail("is given twice");
    reading.has_rest = true;
    in.array([&](std::uint32_t) { scores.rest.push_back(rest_mass(in)); });
  } else {
    in.fail("is not a member of teacher scores");
  }
}

bool has_twice(std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> sorted(tokens.begin(), tokens.end());
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) != sorted.end();
}

// Empty: the row is good.
std::string problem_of_row(Reading& reading, std::size_t row) {
  TeacherScores& scores = reading.scores;
  const std::size_t first = row * scores.top_k;
  if (has_twice(std::span(scores.tokens).subspan(first, scores.top_k))) {
    return std::format("row {}: a token is there twice", row);
  }
  double mass = 0;
  for (std::size_t i = first; i < first + scores.top_k; ++i) mass += std::exp(scores.log_probabilities[i]);
  if (!reading.has_rest) scores.rest.push_back(static_cast<float>(std::max(0.0, 1 - mass)));
  const double whole = mass + (reading.has_rest ? scores.rest[row] : 0);
  const bool short_of_one = reading.has_rest && whole < 1 - teacher_mass_tolerance;
  if (whole <= 1 + teacher_mass_tolerance && !short_of_one) return {};
  return std::format("row {}: the probabilities{} sum to {:.4f}", row, reading.has_rest ? " and the rest" : "", whole);
}

void check(JsonReader& in, Reading& reading) {
  const std::size_t rows = reading.token_rows;
  if (!reading.has_k) return in.fail("has no k");
  if (reading.probability_rows != rows) {
    return in.fail(std::format("has {} rows of tokens and {} of logprobs", rows, reading.probability_rows));
  }
  if (reading.has_rest && reading.scores.rest.size() != rows) {
    return in.fail(std::format("has {} rows of tokens and {} numbers in rest", rows, reading.scores.rest.size()));
  }
  for (std::size_t row = 0; row < rows; ++row) {
    if (const std::string problem = problem_of_row(reading, row); !problem.empty()) return in.fail(problem);
  }
}

}  // namespace

TeacherScores read_teacher_scores(JsonReader& in, std::uint32_t vocabulary_size) {
  Reading reading;
  in.object([&](std::string_view key) { read_member(in, reading, key, vocabulary_size); });
  if (in.ok()) check(in, reading);
  return std::move(reading.scores);
}

Result<TeacherScores> parse_teacher_scores(std::string_view json, std::uint32_t vocabulary_size) {
  JsonReader in(json);
  auto scores = read_teacher_scores(in, vocabulary_size);
  in.expect_end();
  if (in.ok()) return scores;
  const std::string where = in.path().empty() ? "teacher" : in.path();
  return failure(ErrorCode::invalid_request, where + " " + in.problem(), where);
}

std::string teacher_scores_json(const TeacherScores& scores) {
  base::JsonWriter json;
  const auto rows = [&](std::string_view name, const auto& numbers) {
    json.key(name).begin_array();
    for (std::size_t row = 0; row < scores.rows(); ++row) {
      json.begin_array();
      for (std::size_t i = 0; i < scores.top_k; ++i) json.value(numbers[row * scores.top_k + i]);
      json.end_array();
    }
    json.end_array();
  };
  json.begin_object().member("k", scores.top_k);
  rows("tokens", scores.tokens);
  rows("logprobs", scores.log_probabilities);
  json.key("rest").begin_array();
  for (const float rest : scores.rest) json.value(rest);
  return std::move(json.end_array().end_object()).text();
}

}  // namespace molly::training
