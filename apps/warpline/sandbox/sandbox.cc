// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "sandbox/allowed_calls.h"
#include "sandbox/every_thread.h"
#include "sandbox/file_rules.h"

namespace warpline::sandbox {
namespace {

namespace fs = std::filesystem;

/// Capabilities as the kernel numbers them, effective, permitted and inheritable (capabilities(7)).
struct Capabilities {
  std::uint64_t effective = 0;
  std::uint64_t permitted = 0;
};

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

constexpr std::pair<unsigned, std::string_view> kNames[] = {
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"}, {CAP_NET_ADMIN, "CAP_NET_ADMIN"}, {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}};

/// Sets the calling thread's; a system call and no more.
bool set_capabilities(const Capabilities& wanted) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  for (unsigned half = 0; half < 2; ++half) {
    data[half].effective = static_cast<std::uint32_t>(wanted.effective >> (32 * half));
    data[half].permitted = static_cast<std::uint32_t>(wanted.permitted >> (32 * half));
  }
  return syscall(SYS_capset, &header, data) == 0;
}

Capabilities own_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  return {.effective = data[0].effective | (std::uint64_t{data[1].effective} << 32),
          .permitted = data[0].permitted | (std::uint64_t{data[1].permitted} << 32)};
}

/// Returns the first path that this user may use only because it may override the rights of files; empty: none.
fs::path beyond_ordinary_rights(const Needs& needs) {
  const Capabilities now = own_capabilities();
  if ((now.effective & bit(CAP_DAC_OVERRIDE)) == 0) return {};
  set_capabilities({.effective = 0, .permitted = now.permitted});
  const auto usable = [](const fs::path& path, int mode) {
    return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0 || (errno != EACCES && errno != EPERM);
  };
  fs::path found;
  for (const fs::path& path : needs.reads) {
    if (found.empty() && !usable(path, R_OK)) found = path;
  }
  for (const fs::path& path : needs.writes) {
    if (found.empty() && !usable(path, W_OK | X_OK)) found = path;
  }
  set_capabilities(now);
  return found;
}

/// What a run keeps of its capabilities, with the reasons.
std::uint64_t kept_capabilities(const Needs& needs, std::vector<std::string>& notes) {
  std::uint64_t kept = 0;
  const auto keep = [&](unsigned capability, std::string_view why) {
    if ((own_capabilities().effective & bit(capability)) == 0) return;
    kept |= bit(capability);
    const auto* const known = std::ranges::find(kNames, capability, &std::pair<unsigned, std::string_view>::first);
    notes.push_back(fmt::format("keeps {}: {}", known->second, why));
  };
  if (needs.sets_interfaces) keep(CAP_NET_ADMIN, "interfaces of the kernel are set back at the end");
  if (needs.physical) keep(CAP_SYS_ADMIN, "devices reach memory by physical addresses");
  if (const fs::path path = beyond_ordinary_rights(needs); !path.empty()) {
    keep(CAP_DAC_OVERRIDE, fmt::format("the rights of {} do not let this user in", path.string()));
  }
  return kept;
}

/// What every thread does; set before.
struct Step {
  int rules = -1;
  Capabilities kept;
  std::atomic<int> failure{0};  ///< the errno of a thread that the kernel did not restrict
} per_thread;

/// Async-signal-safe: system calls alone.
void restrict_thread() {
  const bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    (per_thread.rules < 0 || syscall(SYS_landlock_restrict_self, per_thread.rules, 0) == 0) &&
                    set_capabilities(per_thread.kept);
  if (!done) per_thread.failure.store(errno, std::memory_order_relaxed);
}

/// The value of a field in a status file of /proc.
std::string status_field(std::string_view field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(field) || line.size() <= field.size() + 2) continue;
    return line.substr(field.size() + 2);
  }
  return {};
}

}  // namespace

Result<Restrictions> restrict_process(const Needs& needs) {
  std::vector<std::string> notes;
  per_thread.kept.effective = per_thread.kept.permitted = kept_capabilities(needs, notes);
  // Locked memory is not refused later that would not have been so far.
  if ((own_capabilities().effective & bit(CAP_IPC_LOCK)) != 0) {
    const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &any);
  }
  const int version = landlock_version();
  if (version != 0 && !needs.gpu) {
    WARPLINE_TRY(per_thread.rules, make_file_rules(needs, version));
  }
  restrict_thread();
  for (const std::string& thread : run_in_every_thread(restrict_thread)) {
    notes.push_back(fmt::format("thread {} keeps its capabilities and files: it takes no signals", thread));
  }
  const bool restricts_files = per_thread.rules >= 0;
  if (const int failure = per_thread.failure.load(std::memory_order_relaxed); failure != 0) {
    return environment_error("cannot give up privileges", std::strerror(failure), "add --keep-privileges");
  }
  if (restricts_files) close(std::exchange(per_thread.rules, -1));
  if (needs.secrets) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  }
  if (needs.gpu) {
    notes.emplace_back("system calls and files are not restricted: the driver of the GPU makes its own");
  } else {
    WARPLINE_CHECK(allow_calls(needs));
  }
  Restrictions now = read_restrictions();
  now.landlock = restricts_files ? version : 0;
  now.notes = std::move(notes);
  return now;
}

Restrictions read_restrictions() {
  Restrictions now;
  const std::uint64_t effective = own_capabilities().effective;
  for (unsigned capability = 0; capability < 64; ++capability) {
    if ((effective & bit(capability)) == 0) continue;
    const auto* const known = std::ranges::find(kNames, capability, &std::pair<unsigned, std::string_view>::first);
    now.capabilities.push_back(known == std::end(kNames) ? fmt::format("capability {}", capability)
                                                         : std::string(known->second));
  }
  now.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
  now.seccomp = status_field("Seccomp") == "2";
  now.core_dumps = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
  return now;
}

}  // namespace warpline::sandbox
