#include <iostream>

#include "audit/verify.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "commands/command.h"

namespace molly::apps {
namespace {

Result<void> verify(Globals& globals) {
  const auto folder = open_data(globals);
  if (!folder) return std::unexpected(folder.error());
  const auto report = audit::verify(folder->audit());
  if (!report) return std::unexpected(report.error());
  globals.exit_code = report->intact() ? 0 : 1;
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().member("intact", report->intact()).member("records", report->records);
    json.member("segments", report->segments).member("unclean_openings", report->unclean_openings);
    json.member("unrecorded", report->unrecorded).member("head", hex(report->head));
    if (report->first_bad) {
      json.key("first_bad")
          .begin_object()
          .member("file", report->first_bad->file)
          .member("offset", report->first_bad->offset);
      json.member("sequence", report->first_bad->sequence).member("why", report->first_bad->why).end_object();
    }
    json.end_object();
    std::cout << json.text() << '\n';
    return {};
  }
  std::cout << (report->intact() ? "intact: " : "DAMAGED: ") << report->records << " records in " << report->segments
            << " files, head " << hex(report->head) << '\n';
  if (report->first_bad) {
    std::cout << "first bad record: number " << report->first_bad->sequence << " in " << report->first_bad->file
              << " at byte " << report->first_bad->offset << ": " << report->first_bad->why << '\n';
  }
  if (report->unclean_openings > 0) {
    std::cout << report->unclean_openings
              << " starts after a crash: up to 50 ms of local requests before each may be missing\n";
  }
  if (report->unrecorded > 0) std::cout << report->unrecorded << " local requests were served while the disk failed\n";
  return {};
}

void print_entry(const Globals& globals, const audit::Entry& entry) {
  const audit::Record& record = entry.record;
  const auto time = std::chrono::floor<std::chrono::milliseconds>(entry.time);
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().member("sequence", entry.sequence).member("time", base::iso_time(time));
    json.member("kind", to_string(record.kind));
    if (record.trace) json.member("trace", record.trace->text());
    json.member("key_id", record.key_id).member("label", record.label).member("target", record.target);
    if (record.tier) json.member("tier", to_string(*record.tier));
    json.member("payload", hex(record.payload)).member("policy", hex(record.policy)).member("outcome", record.outcome);
    json.member("hash", hex(entry.hash)).end_object();
    std::cout << json.text() << '\n';
    return;
  }
  std::cout << entry.sequence << "  " << base::iso_time(time) << "  " << to_string(record.kind) << "  "
            << (record.target.empty() ? "-" : record.target) << "  " << record.outcome << "  "
            << (record.trace ? record.trace->text() : "") << '\n';
}

Result<void> show(const Globals& globals, std::uint64_t from) {
  const auto folder = open_data(globals);
  if (!folder) return std::unexpected(folder.error());
  auto reader = audit::Reader::open(folder->audit(), from);
  if (!reader) return std::unexpected(reader.error());
  while (true) {
    const auto entry = reader->next();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return {};
    print_entry(globals, **entry);
  }
}

}  // namespace

void add_audit(CLI::App& app, Globals& globals) {
  CLI::App* audit = app.add_subcommand("audit", "read and verify the audit log");
  audit->require_subcommand(1);
  add_command(*audit, globals, "verify", "check that no record was altered or removed")->callback([&globals] {
    if (const auto done = verify(globals); !done) fail(globals, done.error());
  });
  CLI::App* print = add_command(*audit, globals, "show", "print the records, one a line");
  auto from = std::make_shared<std::uint64_t>(1);
  print->add_option("--from", *from, "the first record's number");
  print->callback([&globals, from] {
    if (const auto done = show(globals, *from); !done) fail(globals, done.error());
  });
}

}  // namespace molly::apps
