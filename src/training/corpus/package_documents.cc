#include "training/corpus/package_documents.h"

#include <algorithm>
#include <format>
#include <fstream>
#include <iterator>

#include "training/corpus/clean.h"
#include "training/corpus/html_text.h"
#include "training/corpus/reference_books.h"

namespace molly::training {
namespace {

namespace fs = std::filesystem;

Result<std::string> contents_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string contents{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && !in.eof()) return failure(ErrorCode::io_failed, std::format("cannot read {}", path.string()));
  return contents;
}

bool counts(const Source& source, const std::string& below) {
  const auto begins_so = [&](std::string_view start) { return below.starts_with(start); };
  if (std::ranges::any_of(source.left_out, begins_so)) return false;
  if (source.form == TextForm::wordnet) return below.starts_with("data.");
  return below.ends_with(source.ending);
}

// Paths below the source's folder, in the order of their bytes.
Result<std::vector<std::string>> files_of(const Source& source, const fs::path& root) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    if (at->is_symlink() || !at->is_regular_file()) continue;
    std::string below = at->path().lexically_relative(root).generic_string();
    if (counts(source, below)) files.push_back(std::move(below));
  }
  if (error) return failure(ErrorCode::io_failed, std::format("cannot list {}: {}", root.string(), error.message()));
  std::ranges::sort(files);
  return files;
}

bool is_own_text(const Source& source, const std::string& entry) {
  return source.package != "dict-elements" || !describes_superheavy_element(entry);
}

void add_blocks(const std::vector<std::string>& entries, std::size_t size, std::string_view separator,
                const Document& prototype, std::vector<Document>& documents) {
  for (std::size_t first = 0; first < entries.size(); first += size) {
    Document document = prototype;
    document.path += std::format("#{}", first / size);
    for (std::size_t i = first; i < std::min(first + size, entries.size()); ++i) {
      document.text += entries[i];
      document.text += separator;
    }
    documents.push_back(std::move(document));
  }
}

Result<void> add_dictionary(const Source& source, const fs::path& file, const std::string& text,
                            const Document& prototype, std::vector<Document>& documents) {
  const auto index = contents_of(fs::path(file).replace_extension(".index"));
  if (!index) return std::unexpected(index.error());
  auto entries = entries_of(text, *index);
  std::erase_if(entries, [&](const std::string& entry) { return !is_own_text(source, entry); });
  add_blocks(entries, dictionary_entries_a_document, "\n\n", prototype, documents);
  return {};
}

Result<void> add_file(const Source& source, const fs::path& file, const Document& prototype,
                      std::vector<Document>& documents) {
  const auto contents = contents_of(file);
  if (!contents) return std::unexpected(contents.error());
  if (source.form == TextForm::dictionary) return add_dictionary(source, file, *contents, prototype, documents);
  if (source.form == TextForm::wordnet) {
    add_blocks(glosses_of(*contents), entries_a_document, "\n", prototype, documents);
    return {};
  }
  documents.push_back(prototype);
  documents.back().text = text_of_html(*contents);
  return {};
}

}  // namespace

Result<std::vector<Document>> package_documents(const Source& source, const fs::path& folder) {
  const fs::path root = folder / source.folder;
  const auto files = files_of(source, root);
  if (!files) return std::unexpected(files.error());
  std::vector<Document> documents;
  for (const std::string& below : *files) {
    Document prototype{.package = std::string(source.package), .path = std::format("{}/{}", source.folder, below)};
    if (auto added = add_file(source, root / below, prototype, documents); !added) {
      return std::unexpected(added.error());
    }
  }
  for (Document& document : documents) {
    document.text = cleaned(document.text);
    document.held_out = is_held_out(document.package, document.path);
  }
  std::ranges::sort(documents, {}, &Document::path);
  return documents;
}

}  // namespace molly::training
