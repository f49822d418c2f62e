#include <iostream>

#include "base/json_writer.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/local_models.h"
#include "commands/local_server.h"
#include "commands/opened.h"

namespace molly::apps {
namespace {

struct AddOptions {
  std::filesystem::path file;
  std::string name;
  std::filesystem::path projector;
};

std::string warning_of(const targets::ServedModel& model) {
  const auto& engine = model.plan.engine;
  return engine && !engine->fits() ? "it does not fit this device now: " + engine->problem + "\n" : "";
}

Result<void> add(const Globals& globals, const AddOptions& options) {
  targets::ModelEntry model{.name = options.name, .file = options.file, .projector = options.projector};
  std::error_code failed;
  model.file = std::filesystem::canonical(options.file, failed);
  if (failed) return failure(ErrorCode::invalid_request, "there is no file " + options.file.string(), "file");
  if (model.name.empty()) model.name = targets::default_model_name(model.file);
  const auto planned = targets::plan_model(model, model_settings(globals, {model}), sizing::this_device());
  if (!planned) return std::unexpected(planned.error());
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  auto written = (*opened)->database().writer().write(
      [&](store::Connection& connection) { return targets::add_model(connection, model); });
  if (!written) return written;
  tell_server(globals, "reload");
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().member("name", model.name).member("file", model.file.string());
    json.member("context_length", planned->description.context_length.value_or(0));
    json.member("runtime", to_string(planned->plan.server)).end_object();
    std::cout << json.text() << '\n';
  } else {
    std::cout << "added " << model.name << " (context " << planned->description.context_length.value_or(0)
              << " tokens per request, served by " << to_string(planned->plan.server) << ")\n"
              << warning_of(*planned) << "ask it with: molly ask --model " << model.name << " \"...\"\n";
  }
  return {};
}

Result<void> list(const Globals& globals) {
  const auto models = local_models(globals);
  if (!models) return std::unexpected(models.error());
  const targets::ModelSettings settings = model_settings(globals, *models);
  const sizing::Device device = sizing::this_device();
  base::JsonWriter json;
  json.begin_object().key("models").begin_array();
  Table table({"NAME", "ARCHITECTURE", "QUANTIZATION", "CONTEXT", "SIZE", "RUNTIME", "FILE"});
  for (const targets::ModelEntry& model : *models) {
    const auto header = gguf::read_model_file(model.file);
    json.begin_object().member("name", model.name).member("file", model.file.string());
    if (header) {
      const auto planned = targets::plan_model(model, *header, settings, device);
      const std::string_view runtime = planned ? to_string(planned->plan.server) : "-";
      json.member("architecture", header->architecture).member("quantization", header->quantization);
      json.member("context_length", header->context_length).member("bytes", header->file_bytes);
      json.member("runtime", runtime);
      if (!planned) json.member("problem", planned.error().message);
      table.add({model.name, header->architecture, header->quantization, std::to_string(header->context_length),
                 base::human_size(header->file_bytes), std::string(runtime), model.file.string()});
    } else {
      json.member("problem", header.error().message);
      table.add({model.name, "unreadable", "-", "-", "-", "-", model.file.string()});
    }
    json.end_object();
  }
  json.end_array().end_object();
  std::cout << (globals.json ? json.text() + "\n" : table.text());
  return {};
}

Result<void> remove(const Globals& globals, const std::string& name) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  auto written = (*opened)->database().writer().write(
      [&](store::Connection& connection) { return targets::remove_model(connection, name); });
  if (!written) return written;
  tell_server(globals, "reload");
  if (globals.json) {
    base::JsonWriter json;
    json.begin_object().member("removed", name).end_object();
    std::cout << json.text() << '\n';
  } else {
    std::cout << "removed " << name << "; its file was left alone\n";
  }
  return {};
}

}  // namespace

void add_models(CLI::App& app, Globals& globals) {
  CLI::App* models = app.add_subcommand("models", "add, list and remove model files of this device");
  models->require_subcommand(1);

  CLI::App* make = add_command(*models, globals, "add", "serve a GGUF file");
  auto options = std::make_shared<AddOptions>();
  make->add_option("file", options->file, "the model file")->required();
  make->add_option("--name", options->name, "its name in requests (default: from the file's)");
  make->add_option("--projector", options->projector, "multimodal projector file, for images");
  make->callback([&globals, options] {
    if (const auto done = add(globals, *options); !done) fail(globals, done.error());
  });

  add_command(*models, globals, "list", "show the model files that Molly serves")->callback([&globals] {
    if (const auto done = list(globals); !done) fail(globals, done.error());
  });

  CLI::App* end = add_command(*models, globals, "remove", "serve a model file no longer");
  auto name = std::make_shared<std::string>();
  end->add_option("name", *name, "its name")->required();
  end->callback([&globals, name] {
    if (const auto done = remove(globals, *name); !done) fail(globals, done.error());
  });
}

}  // namespace molly::apps
