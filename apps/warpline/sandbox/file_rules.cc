// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_rules.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace warpline::sandbox {
namespace {

namespace fs = std::filesystem;

// linux/landlock.h as of versions that the build's own may not have.
constexpr std::uint64_t kTruncate = 1U << 14;     // 3
constexpr std::uint64_t kDeviceIoctl = 1U << 15;  // 5
constexpr std::uint64_t kTcp = 3;                 // 4: bind and connect
struct Ruleset {
  std::uint64_t files;
  std::uint64_t network;
};

constexpr std::uint64_t kReadFile = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
constexpr std::uint64_t kRead = kReadFile | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kUseDevice = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kDeviceIoctl;
constexpr std::uint64_t kOfFiles = kReadFile | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kDeviceIoctl;

/// All that there is to files, by the version.
std::uint64_t all_of(int version) {
  std::uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  if (version >= 2) all |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) all |= kTruncate;
  if (version >= 5) all |= kDeviceIoctl;
  return all;
}

/// Allows `access` below a path. What is not there cannot be used either.
void allow(int rules, const fs::path& path, std::uint64_t access) {
  const int file = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (file < 0) return;
  struct stat there{};
  fstat(file, &there);
  const landlock_path_beneath_attr rule{.allowed_access = S_ISDIR(there.st_mode) ? access : access & kOfFiles,
                                        .parent_fd = file};
  syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  close(file);
}

/// Returns the devices that runs open after their set-up. Root's run has no other right to /dev: block devices and
/// terminals are root's own files, for which it needs no capability.
std::vector<fs::path> usable_devices() {
  std::vector<fs::path> devices;
  for (const char* const name :
       {"null", "zero", "full", "random", "urandom", "shm", "vfio", "infiniband", "net", "vhost-net", "vhost-vsock"}) {
    devices.push_back(fs::path("/dev") / name);
  }
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename();
    const auto numbered = [&](std::string_view kind) { return name.starts_with(kind); };
    if (numbered("uio") || numbered("hugepages") || numbered("vhost-vdpa-")) devices.push_back(entry.path());
  }
  return devices;
}

}  // namespace

int landlock_version() {
  const auto version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

Result<int> make_file_rules(const Needs& needs, int version) {
  const std::uint64_t all = all_of(version);
  const Ruleset attributes{.files = all, .network = version >= 4 ? kTcp : 0};
  const std::size_t size = version >= 4 ? sizeof attributes : sizeof attributes.files;
  const auto rules = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  if (rules < 0) return environment_error("cannot restrict files", std::strerror(errno), "add --keep-privileges");
  for (const char* const system : {"/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/run/udev"}) {
    allow(rules, system, kRead & all);
  }
  for (const fs::path& device : usable_devices()) allow(rules, device, kUseDevice & all);
  for (const fs::path& path : needs.reads) allow(rules, path, kRead & all);
  for (const fs::path& path : needs.writes) allow(rules, path, all);
  return rules;
}

}  // namespace warpline::sandbox
