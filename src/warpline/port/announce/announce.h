// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <rte_mempool.h>

#include "warpline/base/address.h"
#include "warpline/port/port.h"

namespace warpline::port {

/// Sends packet::announcements() of `addresses` by the first transmit queue of a started port, in buffers of `pool`,
/// the queue's own, in memory that the CPU writes, with the VLAN control word `vlan` (0: no tag). Is called before a
/// worker has the queue. A port that writes files sends none, and what the device does not take is lost: hosts that ask
/// are answered all the same. Returns the number of frames sent.
std::uint32_t announce(const Port& port, std::span<const InterfaceAddress> addresses, rte_mempool& pool,
                       std::uint16_t vlan = 0);

}  // namespace warpline::port
