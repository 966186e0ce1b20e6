// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace warpline::machine {

/// Effective capabilities of this process (capabilities(7)), as `proc`/self/status has them. In a user namespace the
/// kernel heeds only the first two.
struct Privileges {
  bool net_raw = false;    ///< packet sockets
  bool net_admin = false;  ///< TAP interfaces, MTU and promiscuous mode of kernel interfaces
  bool sys_admin = false;  ///< physical addresses
  bool ipc_lock = false;   ///< memory beyond the lock limit
};

[[nodiscard]] Privileges read_privileges(const std::filesystem::path& proc = "/proc");

}  // namespace warpline::machine
