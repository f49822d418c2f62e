// Any answer to any task is marked without harm, and the task's own stays right. The first byte chooses the family.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "probes/probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::probes;
  if (size == 0) return 0;
  const Family& family = families()[data[0] % families().size()];
  const Task task = make_task(family, Language::english, Part::train, data[0]);
  const std::string_view answer(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (is_right(task, answer) != is_right(task, std::string(answer) + "\n")) std::abort();
  if (!is_right(task, task.answer)) std::abort();
  return 0;
}
