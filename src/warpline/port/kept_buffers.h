// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/port/port.h"

namespace warpline::port {

/// Whether the driver of a configured port keeps the buffers that lie in its rings when it is closed, so that they
/// never come back to their pool: net_af_xdp, and net_memif with zero-copy.
[[nodiscard]] bool keeps_buffers(const Port& port);

}  // namespace warpline::port
