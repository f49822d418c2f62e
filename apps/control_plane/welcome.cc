#include "control_plane/welcome.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cmath>
#include <format>
#include <iostream>
#include <map>

#include "base/os/memory.h"
#include "base/text.h"

namespace molly::apps {
namespace {

namespace asio = boost::asio;
using targets::ModelState;
using targets::ModelStatus;

constexpr std::chrono::milliseconds redraw{100};
constexpr int bar_width = 24;
constexpr std::string_view clear_line = "\r\x1b[K";

std::string line_of(const targets::Target& target) {
  const TargetDescription& description = target.description();
  const auto now = std::chrono::steady_clock::now();
  std::string line = std::format("  {:<20} {}  {:<10} {}", description.name, to_string(description.tier),
                                 description.zone, to_string(target.health(now)));
  if (const auto reason = target.health_reason(now); !reason.empty()) line += ": " + reason;
  return line + "\n";
}

// Where the process does not say: a model file is mapped, and what of it is resident has been read.
double share_loaded(const ModelStatus& model) {
  if (model.loaded) return *model.loaded;
  if (model.memory_bytes == 0) return 0;
  const auto resident = static_cast<double>(base::resident_bytes(model.pid));
  return std::min(resident / static_cast<double>(model.memory_bytes), 0.99);
}

std::string outcome_of(const ModelStatus& model, std::chrono::steady_clock::duration took) {
  if (model.state == ModelState::failed) {
    return std::format("{} could not be loaded: {}\n", model.name, model.reason);
  }
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(took);
  return std::format("{} is ready after {}\n", model.name, base::human_duration(passed));
}

std::string bar_of(const ModelStatus& model) {
  return std::format("loading {} {} of {}", model.name, progress_bar(share_loaded(model)),
                     base::human_size(model.memory_bytes));
}

}  // namespace

std::string welcome_text(const std::string& url, const pipeline::Runtime& runtime) {
  std::string out = std::format(
      "\nMolly {} listens on {}\n\n"
      "  chat here     molly chat\n"
      "  any SDK       base URL {}/v1, model \"auto\", any text as key\n"
      "  curl          curl {}/v1/chat/completions -H 'content-type: application/json' \\\n"
      "                  -d '{{\"model\":\"auto\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'\n"
      "  stop          Ctrl-C\n\n",
      MOLLY_VERSION, url, url, url);
  if (runtime.targets.empty()) return out + "nothing can answer yet: add a model with 'molly models add FILE.gguf'\n\n";
  out += "what can answer\n";
  for (const auto& target : runtime.targets) out += line_of(*target);
  return out + "\n";
}

std::string progress_bar(double share) {
  const double kept = std::clamp(share, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(std::lround(kept * bar_width));
  return std::format("[{}{}] {:3.0f} %", std::string(filled, '#'), std::string(bar_width - filled, '.'), kept * 100);
}

asio::awaitable<void> show_loading(std::function<targets::SupervisorStatus()> status, bool terminal) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  std::map<std::string, std::chrono::steady_clock::time_point> began;
  do {
    const auto now = std::chrono::steady_clock::now();
    std::string bar;
    for (const ModelStatus& model : status().models) {
      if (model.state == ModelState::starting) {
        began.try_emplace(model.name, now);
        if (bar.empty()) bar = bar_of(model);
      } else if (const auto known = began.find(model.name); known != began.end()) {
        if (terminal) std::cout << clear_line;
        std::cout << outcome_of(model, now - known->second);
        began.erase(known);
      }
    }
    if (terminal && !bar.empty()) std::cout << clear_line << bar;
    std::cout << std::flush;
    timer.expires_after(redraw);
    co_await timer.async_wait(asio::use_awaitable);
  } while (!began.empty());
}

}  // namespace molly::apps
