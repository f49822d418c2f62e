#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace molly::training {

struct Document {
  std::string package;
  std::string path;  // within the package; a file of many entries is cut into documents "path#0", "path#1", ...
  std::string text;
  bool held_out = false;

  std::string id() const { return package + '/' + path; }
  bool operator==(const Document&) const = default;
};

struct PackageReport {
  std::string package;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t held_out_documents = 0;
  std::uint64_t held_out_bytes = 0;
  std::uint64_t duplicates = 0;   // left out: another document has the same text
  std::uint64_t short_texts = 0;  // left out: fewer bytes than shortest_document
};

struct CorpusReport {
  std::vector<PackageReport> packages;
  std::string sha256;  // of the corpus file
};

inline constexpr std::uint64_t shortest_document = 200;
// Lines of WordNet, entries of dictionaries.
inline constexpr std::size_t entries_a_document = 200;
inline constexpr std::size_t dictionary_entries_a_document = 40;

// Whether a document is kept from training: the first eight bytes of SHA-256 over package, one space and path, as a
// big-endian number, are a multiple of 50.
bool is_held_out(std::string_view package, std::string_view path);

// Reads the packages of sources(), each unpacked in a folder of its name below `packages`, and writes the documents to
// `corpus`: one JSON object a line, {"package","path","held_out","text"}, ordered by package and path. The same
// packages give the same bytes. not_found: a package has no document; io_failed.
Result<CorpusReport> build_corpus(const std::filesystem::path& packages, const std::filesystem::path& corpus);

// io_failed; invalid_request: the line that is no document.
Result<std::vector<Document>> read_corpus(const std::filesystem::path& corpus);

}  // namespace molly::training
