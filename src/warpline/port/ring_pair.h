// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "warpline/base/result.h"

namespace warpline::port {

/// Two net_ring ethdevs joined crosswise: what one transmits on queue q the other receives on queue q. `descriptors`
/// of each queue, a power of two; `node` may be kAnyNode. The ids go to Port::adopt. Needs the EAL.
[[nodiscard]] Result<std::pair<std::uint16_t, std::uint16_t>> make_ring_pair(std::uint16_t queues,
                                                                             std::uint16_t descriptors, int node);

}  // namespace warpline::port
