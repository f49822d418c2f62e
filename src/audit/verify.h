#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "audit/record.h"
#include "core/error.h"

namespace molly::audit {

// What reading a whole log with its hashes found.
struct Report {
  struct Bad {
    std::string file;
    std::uint64_t offset = 0;    // where in the file the bad record starts
    std::uint64_t sequence = 0;  // the number that it should have
    std::string why;
  };
  std::uint64_t records = 0;  // good ones, up to the first bad one
  std::uint64_t segments = 0;
  std::optional<Bad> first_bad;
  std::uint64_t unclean_openings = 0;  // starts after a crash: up to 50 ms before each may be missing
  std::uint64_t unrecorded = 0;        // requests that `gap` records speak of
  Digest head{};                       // hash of the last good record

  // Nothing altered, removed or incomplete. Unclean openings and gaps are honest history, not damage.
  bool intact() const { return !first_bad; }
};

// Reads without a lock, so a log in use may show its newest record as incomplete. Blocks on disk.
Result<Report> verify(const std::filesystem::path& folder);

// Reads entries in order, checking hashes on the way. Not thread-safe. Blocks on disk.
class Reader {
 public:
  static Result<Reader> open(const std::filesystem::path& folder, std::uint64_t first_sequence = 1);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // The next entry; nothing at the end; an error at the first record that does not verify.
  Result<std::optional<Entry>> next();

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace molly::audit
