// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/telemetry/telemetry_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace warpline::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuntimeDirectory = "RUNTIME_DIRECTORY";

/// Returns the value of a variable; empty if there is none.
std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns the folder below which EAL makes "dpdk" by itself.
fs::path of_eal() {
  if (std::getenv(kRuntimeDirectory) != nullptr) return variable(kRuntimeDirectory);
  if (getuid() == 0) return "/var/run";
  return std::getenv("XDG_RUNTIME_DIR") != nullptr ? variable("XDG_RUNTIME_DIR") : "/tmp";
}

/// Returns the folders below which "dpdk" may be, the best first: those that systemd made for the unit
/// (systemd.exec(5): RUNTIME_DIRECTORY, with colons between several), the user's, and the folder for temporary files,
/// which a container with a read-only root still has.
std::vector<fs::path> candidates() {
  std::vector<fs::path> folders;
  for (std::string_view rest = variable(kRuntimeDirectory); !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end != 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (getuid() == 0) folders.emplace_back("/var/run");
  if (const std::string_view of_user = variable("XDG_RUNTIME_DIR"); !of_user.empty() && getuid() != 0) {
    folders.emplace_back(of_user);
  }
  folders.emplace_back("/tmp");
  return folders;
}

/// Returns whether this process may make files below "dpdk" there, and no other user has made that folder.
bool is_usable(const fs::path& folder) {
  struct stat facts{};
  const fs::path dpdk = folder / "dpdk";
  if (lstat(dpdk.c_str(), &facts) != 0) return access(folder.c_str(), W_OK | X_OK) == 0;
  return S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && access(dpdk.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

fs::path runtime_folder() {
  const std::vector<fs::path> folders = candidates();
  const auto usable = std::ranges::find_if(folders, is_usable);
  return usable == folders.end() ? folders.front() : *usable;
}

Result<void> check_runtime_folder() {
  const fs::path folder = runtime_folder();
  if (is_usable(folder)) return {};
  std::vector<std::string> names;
  for (const fs::path& each : candidates()) names.push_back(each.native());
  return environment_error("there is no folder for the sockets and locks of DPDK",
                           fmt::format("this user cannot write to {}", fmt::join(names, ", ")),
                           "name a writable folder in RUNTIME_DIRECTORY, or mount a tmpfs on /tmp");
}

fs::path telemetry_folder(const std::string& name) { return runtime_folder() / "dpdk" / name; }

std::vector<fs::path> telemetry_folders(const fs::path& run) {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code ignored;
    const fs::path dpdk = folder / "dpdk";
    if (fs::is_directory(dpdk, ignored) && std::ranges::find(folders, dpdk) == folders.end()) folders.push_back(dpdk);
  };
  std::ranges::for_each(candidates(), add);
  const auto own = static_cast<std::ptrdiff_t>(folders.size());
  // A user other than root may not search the folders of some units.
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run, ignored)) add(entry.path());
  std::sort(folders.begin() + own, folders.end());
  return folders;
}

void choose_runtime_folder() {
  if (const fs::path folder = runtime_folder(); folder != of_eal()) setenv(kRuntimeDirectory, folder.c_str(), 1);
}

fs::path capture_socket(const fs::path& folder) { return folder / "warpline_capture"; }

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
}

}  // namespace warpline::runtime
