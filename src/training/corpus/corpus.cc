#include "training/corpus/corpus.h"

#include <format>
#include <fstream>
#include <unordered_set>

#include "base/json_writer.h"
#include "training/corpus/package_documents.h"
#include "training/corpus/sources.h"
#include "training/digest.h"
#include "wire/json_reader.h"

namespace molly::training {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t one_held_out_of = 50;

std::string line_of(const Document& document) {
  base::JsonWriter json;
  json.begin_object().member("package", document.package).member("path", document.path);
  json.member("held_out", document.held_out).member("text", document.text).end_object();
  return std::move(json).text() + '\n';
}

void count(const Document& document, PackageReport& report) {
  ++report.documents;
  report.bytes += document.text.size();
  if (!document.held_out) return;
  ++report.held_out_documents;
  report.held_out_bytes += document.text.size();
}

class CorpusFile {
 public:
  explicit CorpusFile(const fs::path& path) : path_(path), out_(path, std::ios::binary | std::ios::trunc) {}

  Result<PackageReport> add(const Source& source, const fs::path& folder) {
    const auto documents = package_documents(source, folder);
    if (!documents) return std::unexpected(documents.error());
    PackageReport report{.package = std::string(source.package)};
    for (const Document& document : *documents) {
      if (document.text.size() < shortest_document) {
        ++report.short_texts;
      } else if (!seen_.insert(sha256_hex(document.text)).second) {
        ++report.duplicates;
      } else {
        write(line_of(document));
        count(document, report);
      }
    }
    if (report.documents > 0) return report;
    return failure(ErrorCode::not_found,
                   std::format("package {} has no documents at {}", source.package, folder.string()));
  }

  Result<std::string> finish() {
    out_.close();
    if (out_.fail()) return failure(ErrorCode::io_failed, std::format("cannot write {}", path_.string()));
    return sha256_.hex();
  }

 private:
  void write(const std::string& line) {
    out_ << line;
    sha256_.add(line);
  }

  fs::path path_;
  std::ofstream out_;
  Sha256 sha256_;
  std::unordered_set<std::string> seen_;
};

Result<Document> document_of(const std::string& line) {
  Document document;
  wire::JsonReader json(line);
  json.object([&](std::string_view key) {
    if (key == "package") {
      document.package = json.string();
    } else if (key == "path") {
      document.path = json.string();
    } else if (key == "text") {
      document.text = json.string();
    } else if (key == "held_out") {
      document.held_out = json.boolean();
    } else {
      json.fail("is unknown");
    }
  });
  json.expect_end();
  if (!json.ok()) return failure(ErrorCode::invalid_request, std::format("{} {}", json.path(), json.problem()));
  return document;
}

}  // namespace

bool is_held_out(std::string_view package, std::string_view path) {
  Sha256 sha256;
  sha256.add(package);
  sha256.add(" ");
  sha256.add(path);
  std::uint64_t number = 0;
  const auto digest = sha256.digest();
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | digest[i];
  return number % one_held_out_of == 0;
}

Result<CorpusReport> build_corpus(const fs::path& packages, const fs::path& corpus) {
  CorpusReport report;
  CorpusFile file(corpus);
  for (const Source& source : sources()) {
    auto package = file.add(source, packages / source.package);
    if (!package) return std::unexpected(package.error());
    report.packages.push_back(*std::move(package));
  }
  auto sha256 = file.finish();
  if (!sha256) return std::unexpected(sha256.error());
  report.sha256 = *std::move(sha256);
  return report;
}

Result<std::vector<Document>> read_corpus(const fs::path& corpus) {
  std::ifstream in(corpus, std::ios::binary);
  if (!in) return failure(ErrorCode::io_failed, std::format("cannot read {}", corpus.string()));
  std::vector<Document> documents;
  for (std::string line; std::getline(in, line);) {
    auto document = document_of(line);
    if (!document) {
      return failure(ErrorCode::invalid_request,
                     std::format("line {} of {}: {}", documents.size() + 1, corpus.string(), document.error().message));
    }
    documents.push_back(*std::move(document));
  }
  if (in.bad()) return failure(ErrorCode::io_failed, std::format("cannot read {}", corpus.string()));
  return documents;
}

}  // namespace molly::training
