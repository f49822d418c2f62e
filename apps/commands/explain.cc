#include <unistd.h>

#include <iostream>

#include "commands/command.h"
#include "traces/traces.h"

namespace molly::apps {
namespace {

Result<void> explain(const Globals& globals, const std::string& text) {
  const auto trace = TraceId::parse(text);
  if (!trace)
    return failure(ErrorCode::invalid_request,
                   "'" + text + "' is not a trace: it looks like tr_01ABC..., as the header x-molly-trace has it");
  const auto folder = open_data(globals);
  if (!folder) return std::unexpected(folder.error());
  // The server writes a record out within a tenth of a second of its end.
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto record = traces::find_in(folder->traces(), *trace);
    if (!record) return std::unexpected(record.error());
    if (*record) {
      std::cout << (globals.json ? traces::to_json(**record) + "\n" : traces::to_text(**record));
      return {};
    }
    ::usleep(100'000);
  }
  return failure(ErrorCode::not_found,
                 "no decision of that trace is kept; the oldest are dropped when max_bytes in [traces] is reached");
}

}  // namespace

void add_explain(CLI::App& app, Globals& globals) {
  CLI::App* command = add_command(app, globals, "explain", "why a request went where it went");
  auto trace = std::make_shared<std::string>();
  command->add_option("trace", *trace, "the answer's x-molly-trace header")->required();
  command->callback([&globals, trace] {
    if (const auto done = explain(globals, *trace); !done) fail(globals, done.error());
  });
}

}  // namespace molly::apps
