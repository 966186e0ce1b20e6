// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nccl/nic.h"

namespace warpline::nccl {

/// The kernel's interfaces that the settings leave, each a NIC with a UDP socket a lane. Environment error: there are
/// none.
[[nodiscard]] Result<Nics> find_socket_nics(const Settings& settings);

}  // namespace warpline::nccl
