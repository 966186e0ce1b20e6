// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "warpline/base/result.h"
#include "warpline/vnic/copy_ops.h"
#include "warpline/vnic/recycle_ops.h"

namespace warpline::port {

/// What net_vnic does beyond ethdev (drivers/vnic/api/): the calls of the driver that is built in, or of a plugin.
struct VnicCalls {
  decltype(&rte_net_vnic_recycle_mbufs) recycle_mbufs;
  decltype(&rte_net_vnic_set_tx_free) set_tx_free;
  decltype(&rte_net_vnic_set_copy_engine) set_copy_engine;
  decltype(&rte_net_vnic_payload_regions) payload_regions;
};

/// Null where the process has no net_vnic: the driver is not built where DPDK's driver headers are not to be had. The
/// EAL's start loads plugins. Control thread.
[[nodiscard]] const VnicCalls* vnic_calls();

/// What everything that needs net_vnic answers in a program without it.
[[nodiscard]] Error built_without_vnic(std::string what);

}  // namespace warpline::port
