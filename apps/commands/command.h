#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"
#include "store/data_folder.h"

// What the subcommands of `molly` share. Each file of this folder adds one subcommand.
namespace molly::apps {

// Options that every subcommand takes.
struct Globals {
  std::optional<std::filesystem::path> config;
  std::optional<std::filesystem::path> data;
  bool json = false;
  int exit_code = 0;
};

// Adds --config, --data and --json to a subcommand and returns it.
CLI::App* add_command(CLI::App& parent, Globals& globals, const std::string& name, const std::string& help);

// The data folder, created when absent.
Result<store::DataFolder> open_data(const Globals& globals);

// Prints the error to standard error (as JSON with --json) and sets the exit code: 2 for wrong use, else 1.
void fail(Globals& globals, const Error& error);

// Aligned columns under a header line, for people.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

bool output_is_terminal();
bool input_is_terminal();

void add_serve(CLI::App& app, Globals& globals);
void add_control_plane(CLI::App& app, Globals& globals);
void add_restart(CLI::App& app, Globals& globals);
void add_chat(CLI::App& app, Globals& globals);
void add_ask(CLI::App& app, Globals& globals);
void add_status(CLI::App& app, Globals& globals);
void add_models(CLI::App& app, Globals& globals);
void add_plan(CLI::App& app, Globals& globals);
void add_keys(CLI::App& app, Globals& globals);
void add_policy(CLI::App& app, Globals& globals);
void add_explain(CLI::App& app, Globals& globals);
void add_audit(CLI::App& app, Globals& globals);
void add_doctor(CLI::App& app, Globals& globals);
void add_completion(CLI::App& app, Globals& globals);

}  // namespace molly::apps
