#include "commands/local_server.h"

#include "base/os/file.h"
#include "commands/json_view.h"
#include "wire/openai.h"

namespace molly::apps {
namespace {

Error error_of(const egress::LocalAnswer& answer, std::string_view body) {
  const auto retry_after = answer.headers.find("retry-after").value_or("");
  return wire::parse_error_answer(static_cast<int>(answer.status), body, retry_after);
}

}  // namespace

Result<LocalServer> LocalServer::of(const Globals& globals) {
  const auto data = store::data_path(globals.data);
  if (!data) return std::unexpected(data.error());
  const store::DataFolder folder{*data};
  // The server says where it listens; the usual place serves until it has said so.
  if (const auto address = base::read_file(folder.run() / "address.json", 64 << 10)) {
    if (auto socket = json_text(*address, "socket"); !socket.empty()) return LocalServer(std::move(socket));
  }
  return LocalServer((folder.run() / "molly.sock").string());
}

Result<egress::LocalAnswer> LocalServer::ask(const egress::LocalRequest& request, const egress::OnBody& on_body) const {
  auto answer = egress::ask_local(socket_, request, on_body);
  if (!answer && answer.error().code == ErrorCode::unavailable) {
    return failure(ErrorCode::unavailable,
                   "no Molly server answers here: start one with 'molly serve' in another terminal");
  }
  if (!answer) return answer;
  if (answer->status / 100 != 2) return std::unexpected(error_of(*answer, answer->body));
  return answer;
}

Result<egress::LocalAnswer> LocalServer::get(const std::string& path) const {
  egress::LocalRequest request;
  request.path = path;
  return ask(request, {});
}

Result<egress::LocalAnswer> LocalServer::post(const std::string& path, std::string body) const {
  egress::LocalRequest request;
  request.method = "POST";
  request.path = path;
  request.body = std::move(body);
  return ask(request, {});
}

Result<egress::LocalAnswer> LocalServer::stream(const std::string& path, std::string body,
                                                const std::function<bool(std::string_view)>& on_body) const {
  egress::LocalRequest request;
  request.method = "POST";
  request.path = path;
  request.body = std::move(body);
  std::string error_body;
  auto answer = egress::ask_local(socket_, request, [&](unsigned status, std::string_view bytes) {
    if (status / 100 == 2) return on_body(bytes);
    error_body += bytes;
    return true;
  });
  if (!answer && answer.error().code == ErrorCode::unavailable) return ask(request, {});
  if (answer && answer->status / 100 != 2)
    return std::unexpected(error_of(*answer, error_body.empty() ? answer->body : error_body));
  return answer;
}

void tell_server(const Globals& globals, const std::string& what) {
  const auto server = LocalServer::of(globals);
  if (!server) return;
  [[maybe_unused]] const auto told = server->post("/molly/v1/" + what, "");
}

}  // namespace molly::apps
