#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "training/adapter/manifest.h"
#include "training/job.h"
#include "training/job_event.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace molly::training;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto job = parse_job(text)) {
    const auto again = parse_job(job_json(*job));
    if (!again || job_json(*again) != job_json(*job)) std::abort();
  }
  if (const auto event = parse_job_event(text); event && *event) {
    if (!parse_job_event(job_event_json(**event))) std::abort();
  }
  std::ignore = parse_manifest(text);
  return 0;
}
