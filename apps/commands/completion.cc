#include <iostream>

#include "commands/command.h"

namespace molly::apps {
namespace {

const CLI::App& root_of(const CLI::App& command) {
  const CLI::App* at = &command;
  while (at->get_parent() != nullptr) at = at->get_parent();
  return *at;
}

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string option_names(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) out += " --" + name;
  }
  return out;
}

std::string command_names(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : visible_commands(app)) out += " " + command->get_name();
  return out;
}

std::string bash_case(const std::string& path, const CLI::App& command) {
  return "    '" + path + "') words='" + command_names(command) + option_names(command) + "' ;;\n";
}

std::string bash_script(const CLI::App& root) {
  std::string cases = bash_case("", root);
  for (const CLI::App* command : visible_commands(root)) {
    cases += bash_case(" " + command->get_name(), *command);
    for (const CLI::App* inner : visible_commands(*command)) {
      cases += bash_case(" " + command->get_name() + " " + inner->get_name(), *inner);
    }
  }
  return "_molly() {\n  local path='' words='' word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in -*) ;; *) [[ $path == *' '*' '* ]] || path+=\" $word\" ;; esac\n  done\n"
         "  case $path in\n" +
         cases +
         "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
         "complete -F _molly molly\n";
}

std::string zsh_script(const CLI::App& root) {
  return "autoload -U +X bashcompinit && bashcompinit\n" + bash_script(root);
}

std::string fish_script(const CLI::App& root) {
  std::string out = "complete -c molly -f\n";
  for (const CLI::App* command : visible_commands(root)) {
    out += "complete -c molly -n __fish_use_subcommand -a " + command->get_name() + " -d '" +
           command->get_description() + "'\n";
    for (const CLI::App* inner : visible_commands(*command)) {
      out += "complete -c molly -n '__fish_seen_subcommand_from " + command->get_name() + "' -a " + inner->get_name() +
             "\n";
    }
  }
  return out;
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\\-", at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

void add_manual_entry(std::string& out, const std::string& path, const CLI::App& command) {
  out += ".SS " + escaped(path) + "\n" + escaped(command.get_description()) + "\n";
  for (const CLI::Option* option : command.get_options()) {
    out += ".TP\n.B " + escaped(option->get_name(true)) + "\n" + escaped(option->get_description()) + "\n";
  }
}

// The manual in man(7) form, made from the same descriptions as --help.
std::string manual(const CLI::App& root) {
  std::string out = ".TH MOLLY 1 \"\" \"molly " MOLLY_VERSION
                    "\"\n.SH NAME\nmolly \\- the orchestrator of your own models\n"
                    ".SH SYNOPSIS\n.B molly\n.I COMMAND\n[\\-\\-json] [OPTIONS]\n.SH DESCRIPTION\n" +
                    escaped(root.get_description()) + "\n.SH COMMANDS\n";
  for (const CLI::App* command : visible_commands(root)) {
    add_manual_entry(out, command->get_name(), *command);
    for (const CLI::App* inner : visible_commands(*command)) {
      add_manual_entry(out, command->get_name() + " " + inner->get_name(), *inner);
    }
  }
  return out +
         ".SH FILES\n.TP\n.I $XDG_CONFIG_HOME/molly/molly.toml\nconfiguration, absent by default\n"
         ".TP\n.I $XDG_DATA_HOME/molly\nkeys, audit log, decision records, sockets\n";
}

void print_script(const CLI::App& root, const std::string& shell) {
  if (shell == "bash") std::cout << bash_script(root);
  if (shell == "zsh") std::cout << zsh_script(root);
  if (shell == "fish") std::cout << fish_script(root);
}

}  // namespace

void add_completion(CLI::App& app, Globals&) {
  CLI::App* command = app.add_subcommand("completion", "print a completion script for a shell");
  command->footer("For bash: source <(molly completion bash)");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([command, shell] { print_script(root_of(*command), *shell); });

  CLI::App* man = app.add_subcommand("man", "print the manual page: molly man | man -l -");
  man->callback([man] { std::cout << manual(root_of(*man)); });
}

}  // namespace molly::apps
