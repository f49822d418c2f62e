#include "commands/local_models.h"

#include "commands/opened.h"
#include "config/file.h"
#include "control_plane/configuration.h"

namespace molly::apps {

Result<std::vector<targets::ModelEntry>> local_models(const Globals& globals) {
  const auto opened = Opened::open(globals);
  if (!opened) return std::unexpected(opened.error());
  auto reader = (*opened)->database().reader();
  if (!reader) return std::unexpected(reader.error());
  return device_models(*reader);
}

targets::ModelSettings model_settings(const Globals& globals, const std::vector<targets::ModelEntry>& models) {
  auto found = config::find_config(globals.config);
  if (!found) return {};
  const auto settings = read_settings(found->document, names_of(models));
  return settings ? settings->models : targets::ModelSettings();
}

}  // namespace molly::apps
