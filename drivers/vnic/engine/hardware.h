// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <rte_ethdev.h>

#include "vnic/args/devargs.h"
#include "vnic/engine/engine.h"
#include "vnic/engine/iommu.h"
#include "vnic/wire/egress.h"
#include "vnic/wire/ingress.h"
#include "vnic/wire/link.h"

namespace warpline::vnic {

/// What stands for a port's hardware; it knows rings, never mbufs, and nothing of ethdev.
///
/// Threads: the device side of a queue belongs to the lcore that polls it with engine=inline, to the engine's thread
/// with engine=thread. What leaves the port passes `egress` under its lock: one wire, as of a real port.
struct Hardware {
  Hardware(std::string port_name, Devargs port_args) : name(std::move(port_name)), args(std::move(port_args)) {}

  std::string name;
  Devargs args;
  std::uint16_t port_id = RTE_MAX_ETHPORTS;
  std::uint16_t rx_queues = 0;  ///< configured
  std::uint16_t tx_queues = 0;

  Link link;
  Iommu iommu;                         ///< which memory the device may touch
  Ingress ingress;                     ///< frames from the wire: filters, flow rules, RSS, packet buffers
  Egress egress{args, link, ingress};  ///< frames to the wire: faults, rate limit, and whatever is at the other end
  Engine engine{*this};                ///< moves frames between rings and those two
};

}  // namespace warpline::vnic
