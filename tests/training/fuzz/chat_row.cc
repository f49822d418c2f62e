#include "training/data/chat_row.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::training;
  const auto row = parse_chat_row({reinterpret_cast<const char*>(data), size}, 2048);
  if (!row) return row.error().message.empty() ? std::abort(), 0 : 0;
  if (row->request.messages.empty()) std::abort();
  if (row->chosen.has_value() != row->rejected.has_value()) std::abort();
  if (row->teacher && row->teacher->tokens.size() != row->teacher->rows() * row->teacher->top_k) std::abort();
  return 0;
}
