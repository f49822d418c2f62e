#pragma once

#include <cstdlib>

#include "adapters_file_writer.h"
#include "engine/adapters/image.h"
#include "engine/adapters/number_format.h"

namespace molly::engine {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// What must hold for every adapter that was accepted, whatever file it came from.
inline void check_adapter(const LoraFile& file, const BaseShape& base) {
  require(!file.tensors.empty());
  for (const auto& tensor : file.tensors) {
    const auto shape = base.projections[static_cast<std::size_t>(tensor.projection)];
    require(tensor.layer < base.layers && tensor.rank >= 1 && tensor.rank <= 512);
    require(tensor.a.size() == std::size_t{tensor.rank} * shape.n_in);
    require(tensor.b.size() == std::size_t{tensor.rank} * shape.n_out);
    require(all_finite(tensor.a) && all_finite(tensor.b) && all_finite({{tensor.scale}}));
  }
  for (const auto type : {FactorType::f16, FactorType::q8_0}) {
    const auto image = make_image(file, type, 256);
    if (!image) continue;  // numbers beyond half precision
    std::vector<std::byte> memory(image->bytes);
    std::vector<std::byte*> pages;
    for (std::uint32_t i = 0; i < image->pages; ++i) pages.push_back(memory.data() + i * image->page_bytes);
    const ResidentAdapter resident(*image, base.layers, pages);
    for (const auto& part : image->parts) require(resident.factors(part.layer, part.projection).rank() == part.rank);
  }
}

}  // namespace molly::engine
