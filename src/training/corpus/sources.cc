#include "training/corpus/sources.h"

#include <array>

namespace molly::training {
namespace {

// What is no prose of the project's own: indexes and search pages; licence texts, which are others' words.
constexpr std::array<std::string_view, 4> not_of_postgresql{"biblio.html", "bookindex.html", "index.html",
                                                            "legalnotice.html"};
constexpr std::array<std::string_view, 11> not_of_python{
    "404.html",   "contents.html", "copyright.html",   "download.html", "genindex",          "improve-page",
    "index.html", "license.html",  "py-modindex.html", "search.html",   "whatsnew/changelog"};
constexpr std::array<std::string_view, 8> not_of_sqlite{
    "books.html",   "consortium_agreement", "copyright-release", "doc_",
    "doclist.html", "keyword_index.html",   "sitemap.html",      "search.d/"};

constexpr std::array<Source, 6> all{{
    {"dict-elements", "usr/share/dictd", TextForm::dictionary, ".dict", {}},
    {"dict-jargon", "usr/share/dictd", TextForm::dictionary, ".dict", {}},
    {"postgresql-doc-18", "usr/share/doc/postgresql-doc-18/html", TextForm::html, ".html", not_of_postgresql},
    {"python3.14-doc", "usr/share/doc/python3.14/html", TextForm::html, ".html", not_of_python},
    {"sqlite3-doc", "usr/share/doc/sqlite3", TextForm::html, ".html", not_of_sqlite},
    {"wordnet-base", "usr/share/wordnet", TextForm::wordnet, "", {}},
}};

}  // namespace

std::span<const Source> sources() { return all; }

}  // namespace molly::training
