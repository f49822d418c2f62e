#include <CLI/CLI.hpp>

#include "commands/command.h"

int main(int argc, char** argv) {
  CLI::App app{
      "Molly answers your applications with the best model that your policy allows:\n"
      "on this device, on your network, on your servers or, only with permission, elsewhere.\n"};
  app.name("molly");
  app.set_version_flag("--version", "molly " MOLLY_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(32);
  app.footer("Start with 'molly serve' in one terminal and 'molly chat' in another.");

  molly::apps::Globals globals;
  molly::apps::add_serve(app, globals);
  molly::apps::add_chat(app, globals);
  molly::apps::add_ask(app, globals);
  molly::apps::add_status(app, globals);
  molly::apps::add_models(app, globals);
  molly::apps::add_plan(app, globals);
  molly::apps::add_keys(app, globals);
  molly::apps::add_policy(app, globals);
  molly::apps::add_explain(app, globals);
  molly::apps::add_audit(app, globals);
  molly::apps::add_doctor(app, globals);
  molly::apps::add_restart(app, globals);
  molly::apps::add_completion(app, globals);
  molly::apps::add_control_plane(app, globals);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    molly::apps::fail(globals, {molly::ErrorCode::internal, std::string("this is a bug: ") + error.what(), ""});
  }
  return globals.exit_code;
}
