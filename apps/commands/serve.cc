#include <iostream>

#include "base/os/file.h"
#include "base/os/process.h"
#include "base/parent/parent.h"
#include "commands/command.h"
#include "commands/json_view.h"
#include "commands/local_server.h"
#include "control_plane/control_plane.h"

namespace molly::apps {
namespace {

Result<void> serve(Globals& globals, const std::vector<std::string>& listen) {
  const auto folder = open_data(globals);
  if (!folder) return std::unexpected(folder.error());
  const auto program = base::own_program();
  if (!program) return std::unexpected(program.error());
  const auto lock = base::FileLock::acquire(folder->run() / "serve.lock");
  if (!lock && lock.error().code == ErrorCode::conflict) {
    return failure(ErrorCode::conflict, "another 'molly serve' runs on the data folder " + folder->root.string() +
                                            ": stop it first, or give this one its own --data");
  }
  if (!lock) return std::unexpected(lock.error());
  base::ParentOptions options;
  options.command = {program->string(), "control-plane", "--data", folder->root.string()};
  if (globals.config) {
    options.command.insert(options.command.end(), {"--config", std::filesystem::absolute(*globals.config).string()});
  }
  for (const std::string& address : listen) options.command.insert(options.command.end(), {"--listen", address});
  globals.exit_code = base::run_parent(options);
  return {};
}

Result<void> control_plane(Globals& globals, const std::string& inherited, const std::vector<std::string>& listen) {
  auto parsed = base::parse_inherited(inherited);
  if (!parsed) return std::unexpected(parsed.error());
  globals.exit_code = run_control_plane(
      {.config = globals.config, .data = globals.data.value_or(""), .listen = listen, .inherited = std::move(*parsed)});
  return {};
}

}  // namespace

void add_serve(CLI::App& app, Globals& globals) {
  CLI::App* command = add_command(app, globals, "serve", "start the server on this machine");
  auto listen = std::make_shared<std::vector<std::string>>();
  command->add_option("--listen", *listen, "ADDRESS:PORT instead of the configured ones; port 0: any free one");
  command->footer("With no configuration at all, Molly serves its embedded model on http://127.0.0.1:7411/v1.");
  command->callback([&globals, listen] {
    if (const auto done = serve(globals, *listen); !done) fail(globals, done.error());
  });
}

void add_control_plane(CLI::App& app, Globals& globals) {
  CLI::App* command = add_command(app, globals, "control-plane", "what 'molly serve' starts; not for people");
  command->group("");
  auto inherited = std::make_shared<std::string>();
  auto listen = std::make_shared<std::vector<std::string>>();
  command->add_option("--inherited", *inherited)->required();
  command->add_option("--listen", *listen);
  command->callback([&globals, inherited, listen] {
    if (const auto done = control_plane(globals, *inherited, *listen); !done) fail(globals, done.error());
  });
}

void add_restart(CLI::App& app, Globals& globals) {
  CLI::App* command =
      add_command(app, globals, "restart", "replace the running control plane; sockets and models stay");
  command->callback([&globals] {
    const auto server = LocalServer::of(globals);
    const auto answer = server ? server->post("/molly/v1/restart", "") : std::unexpected(server.error());
    if (!answer) return fail(globals, answer.error());
    std::cout << (globals.json ? answer->body : std::string("restarting")) << '\n';
  });
}

}  // namespace molly::apps
