#include "training/data/data_set.h"

#include <algorithm>
#include <format>
#include <fstream>
#include <iterator>
#include <span>

#include "base/os/system_error.h"
#include "training/data/chat_row.h"
#include "training/data/chat_tokens.h"
#include "training/data/split.h"
#include "training/data/teacher_file.h"
#include "training/digest.h"

namespace molly::training {
namespace {

constexpr std::size_t max_line_bytes = std::size_t{64} << 20;

class DataReader {
 public:
  DataReader(const std::vector<std::filesystem::path>& files, const engine::Vocabulary& vocabulary,
             const engine::ChatTemplate& chat_template, const DataOptions& options)
      : vocabulary_(vocabulary), tokens_(vocabulary, chat_template), options_(options), split_(files, options) {
    out_.files = files;
  }

  Result<DataSet> read() {
    if (auto opened = open_teacher(); !opened) return std::unexpected(opened.error());
    for (std::uint32_t file = 0; file < out_.files.size(); ++file) {
      if (auto done = read_file(file); !done) return std::unexpected(done.error());
    }
    if (teacher_) {
      if (auto all_read = teacher_->expect_end(); !all_read) return std::unexpected(all_read.error());
    }
    if (auto enough = check_amount(); !enough) return std::unexpected(enough.error());
    summarize();
    return std::move(out_);
  }

 private:
  Result<void> open_teacher() {
    if (options_.teacher_scores.empty()) return {};
    auto opened = TeacherFile::open(options_.teacher_scores);
    if (!opened) return std::unexpected(opened.error());
    teacher_ = *std::move(opened);
    return {};
  }

  Result<void> add_scores(ChatRow& row) {
    if (!teacher_) return {};
    auto scores = teacher_->next(vocabulary_.size());
    if (!scores) return std::unexpected(scores.error());
    if (!*scores) return {};
    if (row.teacher || row.is_preference()) {
      return failure(ErrorCode::invalid_request, "the side file of teacher scores cannot have scores for this row",
                     "teacher_scores");
    }
    row.teacher = *std::move(scores);
    return {};
  }

  Result<void> read_file(std::uint32_t file) {
    const std::filesystem::path& path = out_.files[file];
    std::ifstream in(path, std::ios::binary);
    if (!in) return base::system_failure("open " + path.string());
    const std::size_t rows_before = out_.report.rows;
    std::string line;
    for (std::uint32_t number = 1; std::getline(in, line); ++number) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      auto done = read_row(line, {file, number});
      if (!done) return at_line(path, number, done.error());
    }
    if (in.bad()) return base::system_failure("read " + path.string());
    if (out_.report.rows > rows_before) return {};
    return failure(ErrorCode::invalid_request, path.string() + " is empty: it holds no rows");
  }

  static std::unexpected<Error> at_line(const std::filesystem::path& path, std::uint32_t number, Error error) {
    error.message = std::format("{}:{}: {}", path.string(), number, error.message);
    return std::unexpected(std::move(error));
  }

  Result<void> read_row(std::string_view line, Origin origin) {
    if (line.size() > max_line_bytes) return failure(ErrorCode::invalid_request, "the line is longer than 64 MiB");
    ++out_.report.rows;
    auto row = parse_chat_row(line, vocabulary_.size());
    if (!row) return std::unexpected(row.error());
    if (auto scored = add_scores(*row); !scored) return scored;
    auto rendered = row->is_preference() ? render_preference(*row) : render_conversation(*row);
    if (!rendered) return std::unexpected(rendered.error());
    if (row->key.empty()) {
      const auto prompt = tokens_.first_prompt(row->request);
      if (!prompt) return std::unexpected(prompt.error());
      row->key = sha256_hex(*prompt);
    }
    for (Example& example : *rendered) {
      example.key = row->key;
      example.origin = origin;
    }
    auto kept = fit_context(*std::move(rendered));
    if (!kept) return std::unexpected(kept.error());
    return keep(*std::move(kept), *row);
  }

  Result<std::vector<Example>> render_conversation(ChatRow& row) {
    if (options_.rows == RowKind::preference) {
      return failure(ErrorCode::invalid_request, "a preference is needed: prompt_messages, chosen and rejected");
    }
    if (!row.is_answered()) return render_prompt(row);
    auto examples = tokens_.conversation(row.request);
    if (!examples) return examples;
    if (examples->size() > 1) ++out_.report.divided_conversations;
    if (!row.teacher) return examples;
    if (examples->size() > 1) {
      return failure(
          ErrorCode::invalid_request,
          "teacher scores need a conversation that is one example; the base's chat template rewrites earlier "
          "turns of this one: give each turn its own row",
          "teacher");
    }
    if (row.teacher->rows() != examples->front().counted()) {
      return failure(ErrorCode::invalid_request,
                     std::format("teacher has {} rows of scores, but {} tokens count", row.teacher->rows(),
                                 examples->front().counted()),
                     "teacher");
    }
    examples->front().teacher = std::move(row.teacher);
    return examples;
  }

  Result<std::vector<Example>> render_prompt(const ChatRow& row) const {
    if (options_.rows == RowKind::conversation) {
      return failure(ErrorCode::invalid_request,
                     "the conversation ends without an answer of the assistant: there is nothing to learn from it");
    }
    if (row.teacher) {
      return failure(ErrorCode::invalid_request, "teacher cannot be given for a prompt without an answer", "teacher");
    }
    auto prompt = tokens_.prompt(row.request);
    if (!prompt) return std::unexpected(prompt.error());
    return std::vector<Example>{*std::move(prompt)};
  }

  Result<std::vector<Example>> render_preference(const ChatRow& row) const {
    if (options_.rows != RowKind::preference) {
      return failure(ErrorCode::invalid_request, "a conversation is needed (messages), not a preference");
    }
    std::vector<Example> out;
    for (const auto* answer : {&*row.chosen, &*row.rejected}) {
      auto one = render_answer(row, *answer);
      if (!one) return std::unexpected(one.error());
      out.push_back(*std::move(one));
    }
    if (out[0].tokens != out[1].tokens) return out;
    return failure(ErrorCode::invalid_request, "chosen and rejected are the same", "rejected");
  }

  // Of a preference only the last turn counts: earlier ones are the prompt's.
  Result<Example> render_answer(const ChatRow& row, const Message& answer) const {
    Request whole;
    whole.messages = row.request.messages;
    whole.messages.push_back(answer);
    whole.tools = row.request.tools;
    auto examples = tokens_.conversation(whole);
    if (!examples) return std::unexpected(examples.error());
    const auto prompt = tokens_.prompt(row.request);
    if (!prompt) return std::unexpected(prompt.error());
    Example last = std::move(examples->back());
    std::fill_n(last.counts.begin(), std::min(prompt->tokens.size(), last.counts.size()), std::uint8_t{0});
    return last;
  }

  Result<std::vector<Example>> fit_context(std::vector<Example> examples) {
    const auto is_long = [&](const Example& one) { return one.tokens.size() > options_.context_tokens; };
    if (std::ranges::none_of(examples, is_long)) return examples;
    if (options_.long_examples == LongExamples::refuse) {
      too_long_.push_back(examples.front().origin);
      return std::vector<Example>();
    }
    if (options_.long_examples == LongExamples::truncate && can_be_cut(examples)) {
      std::ranges::for_each(examples, [&](Example& one) { cut(one); });
      ++out_.report.truncated;
      return examples;
    }
    ++out_.report.left_out;
    return std::vector<Example>();
  }

  // Whether something that counts is left of each; a prompt that is cut asks something else.
  bool can_be_cut(const std::vector<Example>& examples) const {
    return std::ranges::all_of(examples, [&](const Example& one) {
      const std::span kept(one.counts.data(), std::min(one.counts.size(), options_.context_tokens));
      return std::ranges::contains(kept, std::uint8_t{1});
    });
  }

  void cut(Example& example) const {
    const std::size_t kept = std::min(example.tokens.size(), options_.context_tokens);
    example.tokens.resize(kept);
    example.counts.resize(kept);
    if (!example.teacher) return;
    const std::size_t rows = example.counted();
    example.teacher->tokens.resize(rows * example.teacher->top_k);
    example.teacher->log_probabilities.resize(rows * example.teacher->top_k);
    example.teacher->rest.resize(rows);
  }

  Result<void> keep(std::vector<Example> examples, const ChatRow& row) {
    if (examples.empty()) return {};
    const auto part = split_.place(row, examples);
    if (!part) return std::unexpected(part.error());
    DataPart& into = *part == Part::held_out ? out_.held_out : out_.train;
    for (const Example& example : examples) add_to_digest(example, *part);
    if (row.is_preference()) {
      into.pairs.push_back({std::move(examples[0]), std::move(examples[1])});
    } else {
      std::ranges::move(examples, std::back_inserter(into.examples));
    }
    return {};
  }

  void add_to_digest(const Example& example, Part part) {
    const std::uint64_t head[] = {example.tokens.size(), static_cast<std::uint64_t>(part)};
    digest_.add({reinterpret_cast<const char*>(head), sizeof head});
    digest_.add({reinterpret_cast<const char*>(example.tokens.data()), example.tokens.size() * sizeof(std::int32_t)});
    digest_.add({reinterpret_cast<const char*>(example.counts.data()), example.counts.size()});
  }

  Result<void> check_amount() const {
    if (!too_long_.empty()) {
      const Origin first = too_long_.front();
      return failure(
          ErrorCode::invalid_request,
          std::format(
              "{}:{}: {} of {} rows are longer than the context of {} tokens, this is the first; shorten them, or "
              "have them left out or truncated (long_examples)",
              out_.files[first.file].string(), first.line, too_long_.size(), out_.report.rows,
              options_.context_tokens));
    }
    if (out_.train.size() < options_.min_train) {
      return failure(
          ErrorCode::invalid_request,
          std::format("the data holds {} examples to train on, at least {} are needed ({} are held out, {} left "
                      "out as too long)",
                      out_.train.size(), options_.min_train, out_.held_out.size(), out_.report.left_out));
    }
    if (options_.held_out_share > 0 && out_.held_out.size() == 0) {
      return failure(ErrorCode::invalid_request,
                     std::format("no example is held out: {} rows have too few different keys for a share of {}",
                                 out_.report.rows, options_.held_out_share));
    }
    return {};
  }

  void summarize() {
    const auto add = [&](const Example& one, std::size_t& tokens, std::size_t& counted) {
      tokens += one.tokens.size();
      counted += one.counted();
    };
    std::size_t ignored = 0;
    const auto add_all = [&](const DataPart& part, std::size_t& tokens, std::size_t& counted) {
      for (const Example& one : part.examples) add(one, tokens, counted);
      for (const Pair& pair : part.pairs) {
        add(pair.chosen, tokens, counted);
        add(pair.rejected, tokens, counted);
      }
    };
    add_all(out_.train, out_.report.train_tokens, out_.report.train_counted_tokens);
    add_all(out_.held_out, out_.report.held_out_tokens, ignored);
    out_.report.train_duplicates = split_.duplicates(Part::train);
    out_.report.held_out_duplicates = split_.duplicates(Part::held_out);
    out_.digest = digest_.hex();
  }

  const engine::Vocabulary& vocabulary_;
  ChatTokens tokens_;
  DataOptions options_;
  Split split_;
  std::optional<TeacherFile> teacher_;
  DataSet out_;
  Sha256 digest_;
  std::vector<Origin> too_long_;
};

}  // namespace

Result<DataSet> read_data(const std::vector<std::filesystem::path>& files, const engine::Vocabulary& vocabulary,
                          const engine::ChatTemplate& chat_template, const DataOptions& options) {
  if (files.empty()) return failure(ErrorCode::invalid_request, "no data file is named", "data");
  if (options.context_tokens < 2) {
    return failure(ErrorCode::invalid_request, "the context must be at least two tokens", "row_tokens");
  }
  if (!(options.held_out_share >= 0 && options.held_out_share < 1)) {
    return failure(ErrorCode::invalid_request, "the held-out share must be at least 0 and below 1", "held_out_share");
  }
  return DataReader(files, vocabulary, chat_template, options).read();
}

}  // namespace molly::training
