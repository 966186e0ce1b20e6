// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_flow_driver.h>

namespace warpline::vnic {

/// The driver's rte_flow operations: validate, create, destroy, flush and query (count). ethdev serialises them.
extern const rte_flow_ops kFlowOps;

}  // namespace warpline::vnic
