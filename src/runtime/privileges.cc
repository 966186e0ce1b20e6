// SPDX-License-Identifier: Apache-2.0
#include "runtime/privileges.h"

#include <linux/capability.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace warpline {

Privileges read_privileges(const std::filesystem::path& proc) {
  std::ifstream status(proc / "self/status");
  std::uint64_t effective = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) effective = std::strtoull(line.c_str() + 7, nullptr, 16);
  }
  const auto has = [effective](unsigned capability) { return ((effective >> capability) & 1) != 0; };
  return {.net_raw = has(CAP_NET_RAW),
          .net_admin = has(CAP_NET_ADMIN),
          .sys_admin = has(CAP_SYS_ADMIN),
          .ipc_lock = has(CAP_IPC_LOCK)};
}

}  // namespace warpline
