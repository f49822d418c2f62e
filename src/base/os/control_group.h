#pragma once

#include <filesystem>
#include <string>
#include <vector>

// Where the kernel says what a control group (a container, a service) may use.
namespace molly::base {

// The folder of our group (version 2) and of each group above it, whose limits bind too; innermost first.
std::vector<std::filesystem::path> control_groups();

// A small file that the kernel makes, without the last line's end; empty when there is none.
std::string kernel_file(const std::filesystem::path& path);

}  // namespace molly::base
