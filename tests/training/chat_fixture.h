#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "training/data/base_text.h"

namespace molly::training {

inline std::string file_contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

// The embedded model's vocabulary with another template.
inline BaseText with_source(std::string_view source) {
  auto vocabulary = engine::Vocabulary::open(MOLLY_SOURCE_DIR "/models/nano.gguf");
  if (!vocabulary) throw std::runtime_error(vocabulary.error().message);
  auto chat_template = engine::ChatTemplate::parse(source, "", "<|end|>");
  if (!chat_template) throw std::runtime_error(chat_template.error().message);
  return {*std::move(vocabulary), *std::move(chat_template)};
}

// With one of the templates that the engine's tests know; its end-of-turn token becomes the vocabulary's.
inline BaseText with_template(std::string_view name, std::string_view end_of_turn = "") {
  std::string source = file_contents(MOLLY_SOURCE_DIR "/tests/engine/templates/" + std::string(name) + ".jinja");
  constexpr std::string_view usual = "<|im_end|>";
  for (std::size_t at = source.find(usual); !end_of_turn.empty() && at != std::string::npos; at = source.find(usual)) {
    source.replace(at, usual.size(), end_of_turn);
  }
  return with_source(source);
}

}  // namespace molly::training
