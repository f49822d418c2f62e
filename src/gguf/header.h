#pragma once

#include "gguf/model_file.h"
#include "gguf/reader.h"

namespace molly::gguf {

// Reads counts, metadata and tensor descriptions; on failure the reader says why.
ModelFile read_header(Reader& reader, std::uint64_t file_bytes, const Limits& limits);

// Fills what the model says of itself from its metadata and tensors.
void summarize(ModelFile& model);

}  // namespace molly::gguf
