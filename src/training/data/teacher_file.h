#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/error.h"
#include "training/data/teacher.h"

namespace molly::training {

// A side file of teacher scores: one line for each row of the data.
class TeacherFile {
 public:
  // Blocks on the disk, as all of this. io_failed.
  static Result<TeacherFile> open(const std::filesystem::path& path);

  // The next row's scores; nothing where the line says null. invalid_request names file and line; also where there are
  // fewer lines than rows.
  Result<std::optional<TeacherScores>> next(std::uint32_t vocabulary_size);
  // invalid_request where lines are left.
  Result<void> expect_end();

 private:
  TeacherFile(std::filesystem::path path, std::ifstream in) : path_(std::move(path)), in_(std::move(in)) {}
  bool read_line(std::string& line);
  std::unexpected<Error> at_line(const std::string& problem) const;

  std::filesystem::path path_;
  std::ifstream in_;
  std::uint32_t line_ = 0;
};

}  // namespace molly::training
