// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ethdev_driver.h>

#include "vnic/personas/persona.h"

namespace warpline::vnic {

/// What ethdev calls, but for the burst functions: all that net_vnic answers, without what the persona lacks.
void set_calls(rte_eth_dev& dev, const Persona& persona);

}  // namespace warpline::vnic
