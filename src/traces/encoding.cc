#include "traces/encoding.h"

namespace molly::traces {
namespace {

constexpr std::size_t head_size = 1 + 16 + 8;

enum Flag : std::uint32_t {
  stream = 1 << 0,
  text = 1 << 1,
  image = 1 << 2,
  audio = 1 << 3,
  file = 1 << 4,
  tools = 1 << 5,
  structured = 1 << 6,
  exact_tokens = 1 << 7,
  prompt_tokens = 1 << 8,
  completion_tokens = 1 << 9,
  error = 1 << 10,
};

void put_number(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out.push_back(static_cast<char>(number | 0x80));
    number >>= 7;
  }
  out.push_back(static_cast<char>(number));
}

template <class Code>
void put_code(std::string& out, Code code) {
  out.push_back(static_cast<char>(code));
}

void put_text(std::string& out, std::string_view words) {
  words = words.substr(0, longest_text);
  put_number(out, words.size());
  out += words;
}

// Indices that may be absent, as 0 for none and one more otherwise.
void put_index(std::string& out, std::uint16_t index) { put_number(out, static_cast<std::uint16_t>(index + 1)); }

template <class List, class Put>
void put_list(std::string& out, const List& list, const Put& put) {
  const std::size_t count = std::min(list.size(), longest_list);
  put_number(out, count);
  for (std::size_t i = 0; i < count; ++i) put(list[i]);
}

std::uint32_t flags_of(const DecisionRecord& record) {
  const auto when = [](bool condition, Flag flag) { return condition ? std::uint32_t{flag} : 0U; };
  return when(record.stream, stream) | when(record.modalities.text, text) | when(record.modalities.image, image) |
         when(record.modalities.audio, audio) | when(record.modalities.file, file) | when(record.needs_tools, tools) |
         when(record.structured, structured) | when(record.exact_tokens.has_value(), exact_tokens) |
         when(record.prompt_tokens.has_value(), prompt_tokens) |
         when(record.completion_tokens.has_value(), completion_tokens) | when(record.error.has_value(), error);
}

void put_head(std::string& out, const DecisionRecord& record) {
  put_code(out, PayloadKind::record);
  out.append(reinterpret_cast<const char*>(record.trace.bytes().data()), record.trace.bytes().size());
  const std::uint64_t catalogue = record.catalogue.id();
  out.append(reinterpret_cast<const char*>(&catalogue), sizeof catalogue);
}

void put_decisions(std::string& out, const DecisionRecord& record) {
  put_list(out, record.targets, [&](const TargetDecision& decision) {
    put_number(out, decision.target);
    put_code(out, decision.verdict);
    put_index(out, decision.rule);
  });
  put_list(out, record.route, [&](const RouteStep& step) {
    put_number(out, step.target);
    put_code(out, step.reason);
  });
  put_list(out, record.attempts, [&](const Attempt& attempt) {
    put_number(out, attempt.target);
    put_code(out, attempt.outcome);
    put_number(out, attempt.http_status);
    put_number(out, attempt.milliseconds);
  });
  put_index(out, record.final_target);
}

// Reads what the functions above wrote. After the first thing that does not fit, all that follows is empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool failed() const { return failed_; }

  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) fail();
    const auto out = rest_.substr(0, std::min(count, rest_.size()));
    rest_.remove_prefix(out.size());
    return out;
  }

  std::uint64_t number() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = code();
      out |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return out;
    }
    fail();
    return 0;
  }

  template <class Small>
  Small small() {
    return static_cast<Small>(number());
  }

  std::uint8_t code() {
    const auto byte = bytes(1);
    return byte.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(byte[0]);
  }

  // Codes of a newer version, above `last`, count as `unknown`.
  template <class Code>
  Code code_up_to(Code last, Code unknown) {
    const std::uint8_t read = code();
    return read <= static_cast<std::uint8_t>(last) ? static_cast<Code>(read) : unknown;
  }

  std::string words() { return std::string(bytes(number())); }

  std::uint16_t index() { return static_cast<std::uint16_t>(small<std::uint16_t>() - 1); }

  // No list is longer than its bytes.
  template <class Item, class Read>
  std::vector<Item> list(const Read& read) {
    const std::uint64_t count = number();
    if (count > longest_list || count > rest_.size()) fail();
    std::vector<Item> out;
    if (failed_) return out;
    out.reserve(count);
    for (std::uint64_t i = 0; i < count && !failed_; ++i) out.push_back(read());
    return out;
  }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }

  std::string_view rest_;
  bool failed_ = false;
};

void read_decisions(Reader& in, DecisionRecord& record) {
  record.targets = in.list<TargetDecision>([&] {
    TargetDecision decision;
    decision.target = in.small<std::uint16_t>();
    decision.verdict = in.code_up_to(Verdict::other, Verdict::other);
    decision.rule = in.index();
    return decision;
  });
  record.route = in.list<RouteStep>([&] {
    RouteStep step;
    step.target = in.small<std::uint16_t>();
    step.reason = in.code_up_to(Reason::other, Reason::other);
    return step;
  });
  record.attempts = in.list<Attempt>([&] {
    Attempt attempt;
    attempt.target = in.small<std::uint16_t>();
    attempt.outcome = in.code_up_to(AttemptOutcome::too_long, AttemptOutcome::other);
    attempt.http_status = in.small<std::uint16_t>();
    attempt.milliseconds = in.small<std::uint32_t>();
    return attempt;
  });
  record.final_target = in.index();
}

Modalities modalities_of(std::uint64_t flags) {
  return {.text = (flags & text) != 0,
          .image = (flags & image) != 0,
          .audio = (flags & audio) != 0,
          .file = (flags & file) != 0};
}

}  // namespace

std::uint64_t hash(std::string_view bytes) {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15;
  std::uint64_t sum = bytes.size() * factor;
  const auto mix = [&](std::uint64_t word) {
    sum = (sum ^ word) * factor;
    sum ^= sum >> 32;
  };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    mix(word);
  }
  std::uint64_t last = 0;
  if (!bytes.empty()) std::memcpy(&last, bytes.data(), bytes.size());
  mix(last);
  mix(sum >> 29);
  return sum;
}

std::string encode_catalogue(const Catalogue& catalogue) {
  std::string out;
  put_code(out, PayloadKind::catalogue);
  out.append(reinterpret_cast<const char*>(catalogue.policy.data()), catalogue.policy.size());
  put_list(out, catalogue.targets, [&](const Catalogue::Target& target) {
    put_text(out, target.name);
    put_code(out, target.tier);
  });
  put_list(out, catalogue.rules, [&](const std::string& rule) { put_text(out, rule); });
  return out;
}

std::optional<Catalogue> decode_catalogue(std::string_view payload) {
  Reader in(payload);
  if (in.code() != static_cast<std::uint8_t>(PayloadKind::catalogue)) return std::nullopt;
  Catalogue out;
  const auto policy = in.bytes(out.policy.size());
  if (!in.failed()) std::ranges::copy(policy, out.policy.begin());
  out.targets = in.list<Catalogue::Target>([&] {
    Catalogue::Target target;
    target.name = in.words();
    target.tier = in.code_up_to(Tier::t3, Tier::t3);
    return target;
  });
  out.rules = in.list<std::string>([&] { return in.words(); });
  if (in.failed()) return std::nullopt;
  return out;
}

std::string_view RecordEncoder::encode(const DecisionRecord& record) {
  std::string& out = buffer_;
  out.clear();
  put_head(out, record);
  put_number(out, flags_of(record));
  put_number(out, static_cast<std::uint64_t>(record.time.time_since_epoch().count()));
  put_number(out, record.milliseconds);
  put_code(out, record.endpoint);
  put_code(out, record.max_tier);
  put_code(out, record.outcome);
  if (record.error) put_code(out, *record.error);
  for (const std::string* words : {&record.member, &record.key_id, &record.application, &record.model, &record.label}) {
    put_text(out, *words);
  }
  put_number(out, record.token_upper_bound);
  for (const auto& count : {record.exact_tokens, record.prompt_tokens, record.completion_tokens}) {
    if (count) put_number(out, *count);
  }
  put_decisions(out, record);
  put_list(out, record.dropped, [&](const std::string& name) { put_text(out, name); });
  return out;
}

std::optional<PayloadKind> kind_of(std::string_view payload) {
  if (payload.empty()) return std::nullopt;
  const auto kind = static_cast<PayloadKind>(payload[0]);
  if (kind == PayloadKind::catalogue || kind == PayloadKind::record) return kind;
  return std::nullopt;
}

std::optional<RecordHead> decode_head(std::string_view payload) {
  if (payload.size() < head_size || kind_of(payload) != PayloadKind::record) return std::nullopt;
  RecordHead head;
  std::memcpy(head.trace.data(), payload.data() + 1, head.trace.size());
  std::memcpy(&head.catalogue, payload.data() + 1 + head.trace.size(), sizeof head.catalogue);
  return head;
}

std::optional<DecisionRecord> decode_record(std::string_view payload, const SharedCatalogue& catalogue) {
  const auto head = decode_head(payload);
  if (!head) return std::nullopt;
  Reader in(payload.substr(head_size));
  DecisionRecord out;
  out.trace = TraceId::from_bytes(head->trace);
  out.catalogue = catalogue;
  const std::uint64_t flags = in.number();
  out.stream = (flags & stream) != 0;
  out.modalities = modalities_of(flags);
  out.needs_tools = (flags & tools) != 0;
  out.structured = (flags & structured) != 0;
  // The highest bits of a damaged number would be a time that no calendar holds.
  out.time += std::chrono::milliseconds(in.number() & 0xFFFF'FFFF'FFFF);
  out.milliseconds = in.small<std::uint32_t>();
  out.endpoint = in.code_up_to(EndpointKind::other, EndpointKind::other);
  out.max_tier = in.code_up_to(Tier::t3, Tier::t3);
  out.outcome = in.code_up_to(Outcome::cancelled, Outcome::failed);
  if ((flags & error) != 0) out.error = in.code_up_to(ErrorCode::internal, ErrorCode::internal);
  for (std::string* words : {&out.member, &out.key_id, &out.application, &out.model, &out.label}) *words = in.words();
  out.token_upper_bound = in.number();
  if ((flags & exact_tokens) != 0) out.exact_tokens = in.number();
  if ((flags & prompt_tokens) != 0) out.prompt_tokens = in.number();
  if ((flags & completion_tokens) != 0) out.completion_tokens = in.number();
  read_decisions(in, out);
  out.dropped = in.list<std::string>([&] { return in.words(); });
  if (in.failed()) return std::nullopt;
  return out;
}

}  // namespace molly::traces
