// Structure over checks: which object code could open a connection at all.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>

namespace molly::egress {
namespace {

const std::set<std::string, std::less<>> ways_out = {
    "connect",   "sendto",         "sendmmsg",      "getaddrinfo",     "getnameinfo",   "gethostbyname",
    "res_query", "gethostbyname2", "getaddrinfo_a", "gethostbyname_r", "io_uring_setup"};

// Names that the archive's objects need from elsewhere.
std::set<std::string> imports_of(const std::filesystem::path& library) {
  std::set<std::string> names;
  const std::string command = "nm --undefined-only --format=just-symbols " + library.string();
  FILE* output = ::popen(command.c_str(), "r");
  char line[8'192];
  while (output != nullptr && std::fgets(line, sizeof line, output) != nullptr) {
    std::string_view name = line;
    name = name.substr(0, name.find_first_of("\n@"));
    names.emplace(name);
  }
  EXPECT_EQ(::pclose(output), 0) << command;
  return names;
}

TEST(Imports, only_egress_can_open_a_connection_or_resolve_a_name) {
  bool saw_egress = false;
  bool saw_http = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MOLLY_BINARY_DIR "/src")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("libmolly_") || entry.path().extension() != ".a") continue;
    const std::set<std::string> imports = imports_of(entry.path());
    std::set<std::string> found;
    for (const std::string& way : ways_out) {
      if (imports.contains(way)) found.insert(way);
    }
    if (name == "libmolly_egress.a") {
      saw_egress = true;
      EXPECT_TRUE(found.contains("connect")) << "this test no longer sees what it looks for";
      continue;
    }
    saw_http = saw_http || name == "libmolly_http.a";
    EXPECT_TRUE(found.empty()) << name << " imports " << *found.begin() << ": only src/egress may";
  }
  EXPECT_TRUE(saw_egress && saw_http);
}

}  // namespace
}  // namespace molly::egress
