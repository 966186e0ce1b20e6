// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <rte_mempool.h>

#include "warpline/base/address.h"
#include "warpline/port/port.h"

namespace warpline::port {

/// How a port says where its addresses are.
struct AnnounceSettings {
  bool router = false;     ///< the station is a router
  std::uint16_t vlan = 0;  ///< control word of the tag that frames have; 0: none
};

/// Sends packet::announcements() of `addresses` by the first transmit queue of a started port, in buffers of `pool`,
/// the queue's own, in memory that the CPU writes. Before a worker has the queue. Nothing is sent by a port that writes
/// files, and what the device does not take is lost: it is told to those who ask, too. Returns the number of frames.
std::uint32_t announce(const Port& port, std::span<const InterfaceAddress> addresses, rte_mempool& pool,
                       const AnnounceSettings& settings = {});

}  // namespace warpline::port
