#include <iostream>

#include "base/text.h"
#include "commands/command.h"
#include "commands/json_view.h"
#include "commands/local_server.h"

namespace molly::apps {
namespace {

std::uint64_t number(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

void print_status(const std::string& status) {
  Table table({"TARGET", "TIER", "ZONE", "HEALTH", "PROCESS", "MEMORY", "WHY"});
  for (const std::string& target : json_elements(status, "targets")) {
    const auto memory = json_text(target, "process.memory_bytes");
    table.add({json_text(target, "name"), json_text(target, "tier"), json_text(target, "zone"),
               json_text(target, "health"), memory.empty() ? "-" : json_text(target, "process.state"),
               memory.empty() ? "-" : base::human_size(number(memory)), json_text(target, "reason")});
  }
  std::cout << table.text();
  std::cout << "requests under way: " << json_text(status, "in_flight") << '\n';
  std::cout << "audit records: " << json_text(status, "audit.records");
  if (json_text(status, "audit.failing") == "true") {
    std::cout << " (FAILING: " << json_text(status, "audit.reason") << "; T2 and T3 are refused)";
  }
  std::cout << "\nconfiguration: " << json_text(status, "configuration.file") << '\n';
  if (const auto problem = json_text(status, "configuration.problem"); !problem.empty()) {
    std::cout << "the file as it stands is refused, the older one is in force:\n" << problem << '\n';
  }
}

}  // namespace

void add_status(CLI::App& app, Globals& globals) {
  add_command(app, globals, "status", "show targets, model processes and the audit log of the running server")
      ->callback([&globals] {
        const auto server = LocalServer::of(globals);
        const auto answer = server ? server->get("/molly/v1/status") : std::unexpected(server.error());
        if (!answer) return fail(globals, answer.error());
        if (globals.json) {
          std::cout << answer->body << '\n';
        } else {
          print_status(answer->body);
        }
      });
}

}  // namespace molly::apps
