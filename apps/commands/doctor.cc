#include <iostream>

#include "audit/verify.h"
#include "base/json_writer.h"
#include "base/os/memory.h"
#include "base/os/process.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/local_server.h"
#include "commands/opened.h"
#include "control_plane/configuration.h"
#include "targets/model_list.h"

namespace molly::apps {
namespace {

// One thing that was looked at: fine, or what is wrong and how to mend it.
struct Finding {
  std::string subject;
  bool fine = false;
  std::string detail;
};

Finding from(std::string subject, const Result<std::string>& checked) {
  return {std::move(subject), checked.has_value(), checked ? *checked : checked.error().message};
}

Result<std::string> check_data(const Globals& globals) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  const auto keys = (*opened)->keys().list();
  if (!keys) return std::unexpected(keys.error());
  return (*opened)->folder().root.string() + ", " + std::to_string(keys->size()) + " keys";
}

Result<std::string> check_configuration(const Globals& globals) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  auto reader = (*opened)->database().reader();
  if (!reader) return std::unexpected(reader.error());
  const auto models = device_models(*reader);
  if (!models) return std::unexpected(models.error());
  auto found = config::find_config(globals.config);
  if (!found) return std::unexpected(found.error());
  const auto settings = read_settings(found->document, names_of(*models));
  if (!settings) return std::unexpected(settings.error());
  return found->path.string() + ", " + std::to_string(settings->targets.size()) + " targets";
}

Result<std::string> check_embedded() {
  const auto model = embedded_model();
  if (!model) return std::unexpected(model.error());
  const auto header = gguf::read_model_file(model->file);
  if (!header) return std::unexpected(header.error());
  return model->file.string();
}

Result<std::string> check_runtime() {
  const auto engine = targets::find_engine({});
  const auto server = base::find_program("llama-server");
  if (!engine) {
    return failure(ErrorCode::unavailable,
                   "molly-engine is not beside this program: build it, or name it as 'engine' in [models]");
  }
  if (!server) {
    return failure(ErrorCode::unavailable,
                   "llama-server is not in PATH, so models that molly-engine does not know cannot run: install "
                   "llama.cpp's tools or name it as 'server' in [models]");
  }
  return engine->string() + ", " + server->string();
}

Result<std::string> check_memory() {
  const auto memory = base::memory_state();
  constexpr std::uint64_t least = 512ULL << 20;
  if (memory.available_bytes < least) {
    return failure(ErrorCode::unavailable, "only " + base::human_size(memory.available_bytes) +
                                               " of memory is free: local models may not start");
  }
  return base::human_size(memory.available_bytes) + " free of " + base::human_size(memory.total_bytes);
}

Result<std::string> check_audit(const Globals& globals) {
  const auto folder = open_data(globals);
  if (!folder) return std::unexpected(folder.error());
  const auto report = audit::verify(folder->audit());
  if (!report) return std::unexpected(report.error());
  if (!report->intact()) {
    return failure(ErrorCode::io_failed, "record " + std::to_string(report->first_bad->sequence) +
                                             " is damaged: 'molly audit verify' says more");
  }
  return std::to_string(report->records) + " records, intact";
}

Result<std::string> check_server(const Globals& globals) {
  const auto server = LocalServer::of(globals);
  if (!server) return std::unexpected(server.error());
  const auto answer = server->get("/ready");
  if (!answer) return std::unexpected(answer.error());
  return "answers on " + server->socket();
}

std::vector<Finding> examine(const Globals& globals) {
  return {from("data folder", check_data(globals)), from("configuration", check_configuration(globals)),
          from("embedded model", check_embedded()), from("model runtime", check_runtime()),
          from("memory", check_memory()),           from("audit log", check_audit(globals)),
          from("server", check_server(globals))};
}

void print(const Globals& globals, const std::vector<Finding>& findings) {
  base::JsonWriter json;
  json.begin_object().key("checks").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object()
        .member("subject", finding.subject)
        .member("fine", finding.fine)
        .member("detail", finding.detail)
        .end_object();
    if (!globals.json)
      std::cout << (finding.fine ? "ok    " : "WRONG ") << finding.subject << ": " << finding.detail << '\n';
  }
  json.end_array().end_object();
  if (globals.json) std::cout << json.text() << '\n';
}

}  // namespace

void add_doctor(CLI::App& app, Globals& globals) {
  add_command(app, globals, "doctor", "check everything and say how to mend what is wrong")->callback([&globals] {
    const auto findings = examine(globals);
    print(globals, findings);
    const bool fine = std::ranges::all_of(findings, &Finding::fine);
    globals.exit_code = fine ? 0 : 1;
  });
}

}  // namespace molly::apps
