#pragma once

#include <cmath>
#include <cstdlib>

#include "adapters_file_writer.h"
#include "engine/adapters/image.h"

namespace molly::engine {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// What must hold for every adapter that was accepted, whatever file it came from.
inline void check_adapter(const LoraFile& file, const BaseShape& base) {
  require(!file.tensors.empty());
  for (const auto& tensor : file.tensors) {
    const auto shape = base.projections[static_cast<std::size_t>(tensor.projection)];
    require(tensor.layer < base.layers && tensor.rank() >= 1 && tensor.rank() <= 512);
    require(tensor.b.columns == tensor.rank() && tensor.n_in() == shape.n_in && tensor.n_out() == shape.n_out);
    require(tensor.a.offset + tensor.a.bytes() <= file.file->size());
    require(tensor.b.offset + tensor.b.bytes() <= file.file->size());
    require(std::isfinite(tensor.scale));
  }
  for (const auto type : {FactorType::f16, FactorType::q8_0}) {
    const auto image = make_image(file, type, 256);
    if (!image) continue;  // numbers that are not finite, or beyond half precision
    auto memory = image->bytes;
    std::vector<std::byte*> pages;
    for (std::uint32_t i = 0; i < image->pages; ++i) pages.push_back(memory.data() + i * image->page_bytes);
    const ResidentAdapter resident(*image, base.layers, pages);
    for (const auto& part : image->parts) require(resident.factors(part.layer, part.projection).rank() == part.rank);
  }
}

}  // namespace molly::engine
