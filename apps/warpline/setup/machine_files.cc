// SPDX-License-Identifier: Apache-2.0
#include "setup/machine_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "warpline/base/files/read_file.h"

namespace warpline::setup {
namespace {

namespace fs = std::filesystem;

Error refused(std::string what, int code) {
  const bool is_right = code == EACCES || code == EPERM || code == EROFS;
  return environment_error(
      std::move(what), std::generic_category().message(code),
      is_right ? "run it as root, on the host rather than in a container" : "`dmesg` may say more");
}

/// Writes `text` with one system call; 0, or errno.
int write_whole(const fs::path& path, std::string_view text, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644);
  if (file < 0) return errno;
  const ssize_t written = ::write(file, text.data(), text.size());
  const int code = written < 0 ? errno : static_cast<std::size_t>(written) == text.size() ? 0 : ENOSPC;
  return ::close(file) != 0 && code == 0 ? errno : code;
}

}  // namespace

std::string MachineFiles::read(const fs::path& path) const { return read_file(at(path)).text; }

bool MachineFiles::exists(const fs::path& path) const {
  std::error_code ignored;
  return fs::exists(at(path), ignored);
}

std::string MachineFiles::link_name(const fs::path& path) const {
  std::error_code ignored;
  return fs::read_symlink(at(path), ignored).filename();
}

bool MachineFiles::has_ipv4_address(const std::string& interface) const {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, ::freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == AF_INET && interface == entry->ifa_name)
      return true;
  }
  return false;
}

Result<void> MachineFiles::tell_kernel(const fs::path& path, std::string_view text) {
  const int code = write_whole(at(path), text, 0);
  if (code == 0) return {};
  return refused(fmt::format("cannot write '{}' to {}", text, path.native()), code);
}

Result<void> MachineFiles::write_file(const fs::path& path, std::string_view text) {
  std::error_code code;
  const fs::path target = at(path);
  fs::path fresh = target;
  fresh += ".new";
  fs::create_directories(target.parent_path(), code);
  if (!code) code.assign(write_whole(fresh, text, O_CREAT | O_TRUNC), std::generic_category());
  if (!code) fs::rename(fresh, target, code);
  if (!code) return {};
  std::error_code ignored;
  fs::remove(fresh, ignored);
  return refused(fmt::format("cannot write {}", path.native()), code.value());
}

Result<void> MachineFiles::remove_file(const fs::path& path) {
  std::error_code code;
  fs::remove(at(path), code);
  if (!code) return {};
  return refused(fmt::format("cannot remove {}", path.native()), code.value());
}

Result<void> MachineFiles::give_to(const fs::path& path, unsigned user) {
  if (::chown(at(path).c_str(), user, static_cast<gid_t>(-1)) == 0) return {};
  return refused(fmt::format("cannot give {} to user {}", path.native(), user), errno);
}

Result<unsigned> MachineFiles::owner(const fs::path& path) const {
  struct stat facts{};
  if (::stat(at(path).c_str(), &facts) == 0) return facts.st_uid;
  return refused(fmt::format("cannot look at {}", path.native()), errno);
}

}  // namespace warpline::setup
