#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

// Which of the machine's processors this process runs on. Linux numbers them from 0.
namespace molly::base {

using Processors = std::vector<std::uint32_t>;  // ascending, each once

// "0,2-3" as 0, 2, 3. invalid_request says what is wrong with the list.
Result<Processors> parse_processors(std::string_view list);
// 0, 2, 3 as "0,2-3".
std::string processors_text(std::span<const std::uint32_t> processors);

// Those that this process may run on.
Processors usable_processors();
// As parse_processors; one that this process may not run on, or that does not exist, is an error.
Result<Processors> choose_processors(std::string_view list);

// How many cores' worth of time this process may use: its processors, or its control group's quota where that is less.
std::uint32_t usable_cores();
// "150000 100000" (microseconds of each period, as in cpu.max) as 2; nothing where there is no limit.
std::optional<std::uint32_t> quota_cores(std::string_view quota);

// Whether the processor multiplies bytes (AVX-512 VNNI, with the parts of AVX-512 that go with it).
bool multiplies_bytes();

// From now on this thread, and every thread that it starts, runs on these only. io_failed.
Result<void> run_only_on(std::span<const std::uint32_t> processors);

}  // namespace molly::base
