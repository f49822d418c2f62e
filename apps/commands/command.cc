#include "commands/command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/json_writer.h"

namespace molly::apps {

CLI::App* add_command(CLI::App& parent, Globals& globals, const std::string& name, const std::string& help) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("--config", globals.config, "configuration file (default: $XDG_CONFIG_HOME/molly/molly.toml)");
  command->add_option("--data", globals.data, "data folder (default: $XDG_DATA_HOME/molly)");
  command->add_flag("--json", globals.json, "print JSON");
  return command;
}

Result<store::DataFolder> open_data(const Globals& globals) {
  const auto path = store::data_path(globals.data);
  if (!path) return std::unexpected(path.error());
  return store::open_data_folder(*path);
}

void fail(Globals& globals, const Error& error) {
  globals.exit_code = error.code == ErrorCode::invalid_request || error.code == ErrorCode::config_invalid ? 2 : 1;
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().key("error").begin_object();
    json.member("code", to_string(error.code)).member("message", error.message);
    if (!error.field.empty()) json.member("field", error.field);
    json.end_object().end_object();
    std::cout << json.text() << '\n';
  }
  std::cerr << "molly: " << error.message << '\n';
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - row[i].size() + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

bool output_is_terminal() { return isatty(STDOUT_FILENO) != 0; }
bool input_is_terminal() { return isatty(STDIN_FILENO) != 0; }

}  // namespace molly::apps
