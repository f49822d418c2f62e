#include <iostream>
#include <sstream>

#include "base/json_writer.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/local_server.h"
#include "commands/opened.h"
#include "members/keys.h"

namespace molly::apps {
namespace {

struct CreateOptions {
  std::string label;
  std::string member;
  std::vector<std::string> roles;
  std::string max_tier;
  std::vector<std::string> models;
  std::string expires_in;
};

std::string day(std::chrono::sys_seconds time) { return base::iso_time(time).substr(0, 10); }

std::string state_of(const members::Key& key) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  if (key.revoked) return "revoked " + day(*key.revoked);
  if (key.expires && *key.expires <= now) return "expired " + day(*key.expires);
  return key.expires ? "until " + day(*key.expires) : "valid";
}

void write_json(base::JsonWriter& json, const members::Key& key) {
  json.member("id", key.id).member("label", key.label).member("member", key.member);
  json.key("roles").begin_array();
  for (const std::string& role : key.roles) json.value(role);
  json.end_array().key("models").begin_array();
  for (const std::string& model : key.scope.models) json.value(model);
  json.end_array();
  if (key.scope.max_tier) json.member("max_tier", to_string(*key.scope.max_tier));
  json.member("created", base::iso_time(key.created));
  if (key.expires) json.member("expires", base::iso_time(*key.expires));
  if (key.revoked) json.member("revoked", base::iso_time(*key.revoked));
  json.member("state", state_of(key));
}

Result<members::NewKey> wanted_key(const CreateOptions& options) {
  members::NewKey wanted{.label = options.label, .member = options.member, .roles = options.roles};
  wanted.scope.models = options.models;
  if (!options.max_tier.empty()) {
    wanted.scope.max_tier = parse_tier(options.max_tier);
    if (!wanted.scope.max_tier) return failure(ErrorCode::invalid_request, "--max-tier is T0, T1, T2 or T3");
  }
  if (!options.expires_in.empty()) {
    const auto lifetime = base::parse_duration(options.expires_in);
    if (!lifetime) return failure(ErrorCode::invalid_request, "--expires-in is a duration such as 12h or 90d");
    wanted.expires = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() + *lifetime);
  }
  return wanted;
}

Result<void> create(const Globals& globals, const CreateOptions& options) {
  const auto wanted = wanted_key(options);
  if (!wanted) return std::unexpected(wanted.error());
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  const auto created = (*opened)->keys().create(*wanted);
  if (!created) return std::unexpected(created.error());
  tell_server(globals, "keys");
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object();
    write_json(json, created->key);
    json.member("key", created->text.reveal()).end_object();
    std::cout << json.text() << '\n';
  } else {
    std::cout << created->text.reveal() << '\n';
    std::cerr << "This key is shown once and kept nowhere: store it now. Send it as 'Authorization: Bearer KEY'.\n";
  }
  return {};
}

Result<void> list(const Globals& globals) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  const auto keys = (*opened)->keys().list();
  if (!keys) return std::unexpected(keys.error());
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().key("keys").begin_array();
    for (const members::Key& key : *keys) {
      json.begin_object();
      write_json(json, key);
      json.end_object();
    }
    json.end_array().end_object();
    std::cout << json.text() << '\n';
    return {};
  }
  if (keys->empty()) {
    std::cout << "No keys yet: 'molly keys create LABEL' makes one. Without keys Molly serves this machine only.\n";
    return {};
  }
  Table table({"ID", "LABEL", "MEMBER", "TIER", "STATE"});
  for (const members::Key& key : *keys) {
    table.add({key.id, key.label, key.member, key.scope.max_tier ? std::string(to_string(*key.scope.max_tier)) : "-",
               state_of(key)});
  }
  std::cout << table.text();
  return {};
}

Result<void> revoke(const Globals& globals, const std::string& id) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  const auto revoked = (*opened)->keys().revoke(id);
  if (!revoked) return std::unexpected(revoked.error());
  tell_server(globals, "keys");
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().member("revoked", id).end_object();
    std::cout << json.text() << '\n';
  } else {
    std::cout << "revoked " << id << "; a running server refuses it from now on\n";
  }
  return {};
}

}  // namespace

void add_keys(CLI::App& app, Globals& globals) {
  CLI::App* keys = app.add_subcommand("keys", "create, list and revoke access keys");
  keys->require_subcommand(1);

  CLI::App* make = add_command(*keys, globals, "create", "make a key and show it once");
  auto options = std::make_shared<CreateOptions>();
  make->add_option("label", options->label, "what you call it")->required();
  make->add_option("--member", options->member, "who acts by it (default: the label)");
  make->add_option("--role", options->roles, "a role of that member, for grants; may be repeated");
  make->add_option("--max-tier", options->max_tier, "the highest tier it may reach: T0, T1, T2, T3");
  make->add_option("--model", options->models, "a model it may ask for (default: all); may be repeated");
  make->add_option("--expires-in", options->expires_in, "its lifetime, e.g. 90d");
  make->callback([&globals, options] {
    if (const auto done = create(globals, *options); !done) fail(globals, done.error());
  });

  add_command(*keys, globals, "list", "show all keys, without their secrets")->callback([&globals] {
    if (const auto done = list(globals); !done) fail(globals, done.error());
  });

  CLI::App* end = add_command(*keys, globals, "revoke", "end a key's life now");
  auto id = std::make_shared<std::string>();
  end->add_option("id", *id, "the key's id, as 'molly keys list' shows it")->required();
  end->callback([&globals, id] {
    if (const auto done = revoke(globals, *id); !done) fail(globals, done.error());
  });
}

}  // namespace molly::apps
