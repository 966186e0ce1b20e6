// SPDX-License-Identifier: Apache-2.0
#include "attach/telemetry_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "warpline/runtime/telemetry/telemetry_folder.h"

namespace warpline::attach {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kWelcome{5};
constexpr std::size_t kMostRoom = 1U << 24;

/// The number in a field of DPDK's welcome; 0 if there is none.
std::uint64_t number_in(const nlohmann::json& welcome, const char* field) {
  if (!welcome.is_object()) return 0;
  const auto found = welcome.find(field);
  return found != welcome.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace

nlohmann::json answer_in(std::string_view text, std::string_view command) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return nullptr;
  const auto found = json.find(std::string(command.substr(0, command.find(','))));
  return found == json.end() ? nlohmann::json() : *found;
}

Result<TelemetryClient> TelemetryClient::connect(const std::string& name) {
  for (const fs::path& folder : runtime::telemetry_folders()) {
    if (Result<TelemetryClient> client = connect_in(folder / name)) return client;
  }
  return connect_in(runtime::telemetry_folder(name));  // the error names the usual place
}

Result<TelemetryClient> TelemetryClient::connect_in(const fs::path& folder) {
  const std::string name = folder.filename();
  const std::string path = folder / "dpdk_telemetry.v2";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  int problem = ENAMETOOLONG;
  TelemetryClient client(folder, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (path.size() < sizeof address.sun_path) {
    path.copy(address.sun_path, path.size());
    const bool connected = ::connect(client.file_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    problem = connected ? 0 : errno;
  }
  if (problem != 0) {
    return environment_error(fmt::format("cannot reach a process of the name {}", name),
                             fmt::format("{}: {}", path, std::strerror(problem)),
                             fmt::format("start it with --telemetry {}, as the same user", name));
  }
  WARPLINE_TRY(const std::string text, client.receive(kWelcome));
  const nlohmann::json welcome = nlohmann::json::parse(text, nullptr, false);
  client.pid_ = static_cast<int>(number_in(welcome, "pid"));
  client.room_ = std::clamp<std::size_t>(number_in(welcome, "max_output_len"), client.room_, kMostRoom);
  return client;
}

Result<TelemetryClient> TelemetryClient::connect_to(std::uint32_t pid) {
  std::error_code ignored;
  for (const fs::path& folder : runtime::telemetry_folders()) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      Result<TelemetryClient> client = connect_in(entry.path());
      if (client && client->pid() == static_cast<int>(pid)) return client;
    }
  }
  return environment_error(fmt::format("cannot reach process {}", pid),
                           "no process of this user answers with that number",
                           "start it with --telemetry NAME, as the same user");
}

TelemetryClient::~TelemetryClient() {
  if (file_ >= 0) close(file_);
}

Error TelemetryClient::gone() {
  ended_ = true;
  return {ErrorKind::peer, fmt::format("cannot ask {}", name()), "the process has ended", "start it again"};
}

Result<std::string> TelemetryClient::receive(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  pollfd ready{.fd = file_, .events = POLLIN, .revents = 0};
  int events = 0;
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    events = poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
  } while (events < 0 && errno == EINTR);
  if (events <= 0) {
    return Error{ErrorKind::peer, fmt::format("cannot ask {}", name()),
                 fmt::format("it does not answer for {} s", patience.count()), "look whether it is stuck"};
  }
  std::string text(room_, '\0');
  const ssize_t size = recv(file_, text.data(), text.size(), 0);
  if (size <= 0) return gone();
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Result<void> TelemetryClient::look() {
  char byte = 0;
  const ssize_t size = recv(file_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size == 0 || (size < 0 && errno != EAGAIN)) return gone();
  return {};
}

Result<nlohmann::json> TelemetryClient::ask(const std::string& command, std::chrono::seconds patience) {
  if (send(file_, command.data(), command.size(), MSG_NOSIGNAL) < 0) return gone();
  WARPLINE_TRY(const std::string text, receive(patience));
  return answer_in(text, command);
}

}  // namespace warpline::attach
