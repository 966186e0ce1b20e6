// SPDX-License-Identifier: Apache-2.0
#include "frame/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace warpline {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::uint64_t number(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

ServiceManager::ServiceManager() {
  const std::string path = variable("NOTIFY_SOCKET");
  sockaddr_un name{};
  if (path.empty() || path.size() >= sizeof name.sun_path || (path[0] != '/' && path[0] != '@')) return;
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, path.size());
  if (path[0] == '@') name.sun_path[0] = '\0';  // of the abstract namespace
  socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    close(socket_);
    socket_ = -1;
  }
  const std::string watched = variable("WATCHDOG_PID");
  if (watched.empty() || number(watched) == static_cast<std::uint64_t>(getpid())) {
    every_ = std::chrono::microseconds(number(variable("WATCHDOG_USEC")) / 2);
  }
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) close(socket_);
}

void ServiceManager::ready() { tell("READY=1"); }

void ServiceManager::alive() {
  if (every_.count() == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ < every_) return;
  told_ = now;
  tell("WATCHDOG=1");
}

void ServiceManager::stopping() { tell("STOPPING=1"); }

void ServiceManager::tell(std::string_view state) const {
  if (socket_ >= 0) send(socket_, state.data(), state.size(), MSG_NOSIGNAL);
}

}  // namespace warpline
