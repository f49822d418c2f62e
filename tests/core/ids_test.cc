#include "core/ids.h"

#include <gtest/gtest.h>

namespace molly {
namespace {

TEST(TraceId, reads_back_what_it_writes) {
  for (int i = 0; i < 1000; ++i) {
    const TraceId id = TraceId::generate();
    EXPECT_EQ(TraceId::parse(id.text()), id);
  }
}

TEST(TraceId, refuses_what_is_not_an_id) {
  for (const char* text :
       {"", "tr_", "tr_0", "tr_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "tr_0000000000000000000000000U", "hello"}) {
    EXPECT_FALSE(TraceId::parse(text)) << text;
  }
}

TEST(TraceId, sorts_by_time) {
  const TraceId first = TraceId::generate();
  while (TraceId::generate().unix_milliseconds() == first.unix_milliseconds()) {
  }
  EXPECT_LT(first.text(), TraceId::generate().text());
}

}  // namespace
}  // namespace molly
