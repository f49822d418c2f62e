#include "training/data/teacher_file.h"

#include <format>
#include <string>
#include <utility>

#include "base/os/system_error.h"

namespace molly::training {

Result<TeacherFile> TeacherFile::open(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::system_failure("open " + path.string());
  return TeacherFile(path, std::move(in));
}

bool TeacherFile::read_line(std::string& line) {
  while (std::getline(in_, line)) {
    ++line_;
    if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
  return false;
}

std::unexpected<Error> TeacherFile::at_line(const std::string& problem) const {
  return failure(ErrorCode::invalid_request, std::format("{}:{}: {}", path_.string(), line_, problem),
                 "teacher_scores");
}

Result<std::optional<TeacherScores>> TeacherFile::next(std::uint32_t vocabulary_size) {
  std::string line;
  if (!read_line(line)) return at_line("the file ends before the rows of the data do");
  wire::JsonReader in(line);
  if (in.at_null()) {
    in.skip();
    in.expect_end();
    if (in.ok()) return std::nullopt;
  }
  auto scores = parse_teacher_scores(line, vocabulary_size);
  if (!scores) return at_line(scores.error().message);
  return *std::move(scores);
}

Result<void> TeacherFile::expect_end() {
  std::string line;
  if (!read_line(line)) return {};
  return at_line("there are more lines than rows in the data");
}

}  // namespace molly::training
