// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/telemetry/telemetry_folder.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

namespace warpline::runtime {

std::filesystem::path telemetry_folder(const std::string& name) {
  const char* const own = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path folder = geteuid() == 0 ? "/var/run" : own != nullptr ? own : "/tmp";
  return folder / "dpdk" / name;
}

std::filesystem::path capture_socket(const std::string& name) { return telemetry_folder(name) / "warpline_capture"; }

Result<void> check_telemetry_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = telemetry_folder(name) / "dpdk_telemetry.v2";
  if (path.size() >= sizeof address.sun_path) {
    return usage_error(fmt::format("cannot use --telemetry {}", name),
                       fmt::format("{} is too long for the path of a socket", path), "choose a shorter name");
  }
  path.copy(address.sun_path, path.size());
  const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool answered = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  if (!answered) return {};
  return environment_error(fmt::format("cannot use --telemetry {}", name), "a process of that name runs",
                           "choose another name, or end that process");
}

void remove_telemetry_sockets(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.is_socket(ignored)) std::filesystem::remove(entry.path(), ignored);
  }
  std::filesystem::remove(folder, ignored);
  std::filesystem::remove(folder.parent_path(), ignored);
}

}  // namespace warpline::runtime
