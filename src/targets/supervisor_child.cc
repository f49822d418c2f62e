#include "targets/supervisor_child.h"

#include "egress/child_question.h"
#include "wire/json_reader.h"

namespace molly::targets {
namespace {

namespace asio = boost::asio;

class ParentLauncher : public ChildLauncher {
 public:
  explicit ParentLauncher(base::ParentClient& client) : client_(client) {}
  void on_exit(std::function<void(base::ChildExit)> callback) override { client_.on_exit(std::move(callback)); }
  asio::awaitable<Result<base::Child>> spawn(base::SpawnRequest request) override {
    return client_.spawn(std::move(request));
  }
  asio::awaitable<Result<void>> signal(base::ChildId id, int signal_number) override {
    return client_.signal(id, signal_number);
  }
  asio::awaitable<Result<base::ChildList>> list() override { return client_.list(); }

 private:
  base::ParentClient& client_;
};

egress::Endpoint child_endpoint(const std::filesystem::path& socket) {
  egress::Endpoint endpoint;
  endpoint.target = "model process";
  endpoint.tier = Tier::t0;
  endpoint.scheme = egress::Scheme::unix_socket;
  endpoint.socket = socket;
  endpoint.connect_deadline = std::chrono::seconds(2);
  endpoint.deadlines.first_byte = std::chrono::seconds(5);
  endpoint.deadlines.idle = std::chrono::seconds(5);
  return endpoint;
}

// molly-engine says {"status":"loading","progress":0.42}; llama-server says nothing of the kind.
std::optional<double> loaded_share(std::string_view body) {
  std::optional<double> share;
  wire::JsonReader in(body);
  in.object([&](std::string_view key) {
    if (key != "progress") return in.skip();
    share = in.number().value;
  });
  if (!in.ok() || !share || !(*share >= 0 && *share <= 1)) return std::nullopt;
  return share;
}

class SocketProbe : public ChildProbe {
 public:
  explicit SocketProbe(asio::io_context& context) : context_(context) {}

  asio::awaitable<ChildHealth> health(const std::filesystem::path& socket) override {
    const auto endpoint = child_endpoint(socket);
    const auto answer = co_await egress::ask_child(context_, endpoint, egress::ChildQuestion::health);
    if (!answer) co_return ChildHealth{};
    if (answer->status == 200) co_return ChildHealth{.ready = true, .loaded = 1};
    co_return ChildHealth{.loaded = loaded_share(answer->body)};
  }

  asio::awaitable<Result<void>> one_token(const std::filesystem::path& socket, const base::Secret& key) override {
    auto endpoint = child_endpoint(socket);
    endpoint.key = key;
    // The first token of a large model reads all of it from the disk.
    endpoint.deadlines.first_byte = std::chrono::minutes(5);
    const auto answer = co_await egress::ask_child(context_, endpoint, egress::ChildQuestion::one_token);
    if (!answer)
      co_return failure(ErrorCode::upstream_failed, "it did not answer a first question: " + answer.error().message);
    if (answer->status != 200) {
      co_return failure(ErrorCode::upstream_failed,
                        "it answered a first question with status " + std::to_string(answer->status));
    }
    co_return Result<void>{};
  }

 private:
  asio::io_context& context_;
};

}  // namespace

std::shared_ptr<ChildLauncher> launch_through(base::ParentClient& client) {
  return std::make_shared<ParentLauncher>(client);
}

std::shared_ptr<ChildProbe> make_child_probe(asio::io_context& context) {
  return std::make_shared<SocketProbe>(context);
}

}  // namespace molly::targets
