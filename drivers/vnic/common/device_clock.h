// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::vnic {

/// The device's clock, nanoseconds since it was first read; what rte_eth_read_clock and timestamps count in. The first
/// read takes 20 ms (it measures the time-stamp counter): probe does it.
[[nodiscard]] std::uint64_t device_nanos();

}  // namespace warpline::vnic
