// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/privileges.h"

#include <linux/capability.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace warpline::machine {

namespace {

/// The initial user namespace maps all 32-bit user ids to themselves (user_namespaces(7)).
bool in_user_namespace(const std::filesystem::path& proc) {
  std::ifstream map(proc / "self/uid_map");
  std::uint64_t inside = 0, outside = 0, count = 0;
  if (!(map >> inside >> outside >> count)) return false;
  return inside != 0 || outside != 0 || count != 0xffff'ffff;
}

}  // namespace

Privileges read_privileges(const std::filesystem::path& proc) {
  std::ifstream status(proc / "self/status");
  std::uint64_t effective = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) effective = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  const auto has = [effective](unsigned capability) { return ((effective >> capability) & 1) != 0; };
  const bool initial = !in_user_namespace(proc);
  return {.net_raw = has(CAP_NET_RAW),
          .net_admin = has(CAP_NET_ADMIN),
          .sys_admin = initial && has(CAP_SYS_ADMIN),
          .ipc_lock = initial && has(CAP_IPC_LOCK)};
}

}  // namespace warpline::machine
