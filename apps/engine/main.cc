#include <CLI/CLI.hpp>
#include <iostream>

#include "engine/adapter.h"
#include "engine/plan.h"
#include "engine/serve.h"

int main(int argc, char** argv) {
  CLI::App app{"molly-engine serves one base model and many LoRA adapters at once, in mixed batches.\n"};
  app.name("molly-engine");
  app.set_version_flag("--version", "molly-engine " MOLLY_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  int exit_code = 0;
  molly::apps::add_engine_serve(app, exit_code);
  molly::apps::add_engine_plan(app, exit_code);
  molly::apps::add_engine_adapter(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "molly-engine: this is a bug: " << error.what() << '\n';
    return 1;
  }
  return exit_code;
}
