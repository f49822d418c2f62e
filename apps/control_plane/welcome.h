#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "pipeline/runtime.h"
#include "targets/supervisor.h"

// What a person who starts the server sees on standard output.
namespace molly::apps {

// Where the server listens, how to call it, and what can answer.
std::string welcome_text(const std::string& url, const pipeline::Runtime& runtime);

// "[########............] 41 %" for a share between 0 and 1.
std::string progress_bar(double share);

// A bar while model processes start, for terminals, and a line for each one that is ready or failed. Returns when
// none is starting any more.
boost::asio::awaitable<void> show_loading(std::function<targets::SupervisorStatus()> status, bool terminal);

}  // namespace molly::apps
