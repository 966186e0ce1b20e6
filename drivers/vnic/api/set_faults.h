// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// C linkage, so that a program that loads the driver as a plugin finds it with dlsym.
extern "C" {

/// Changes what goes wrong on the wire of a net_vnic port, started or not: `text` holds the devargs' keys, as in
/// "loss=0.01,delay=10us". What it does not name stays; empty text ends all faults. 0, -ENODEV when the port is none,
/// -EINVAL, after one log line and with nothing changed, for a key or value that cannot be, -ENOMEM.
int rte_net_vnic_set_faults(std::uint16_t port_id, const char* text);

}  // extern "C"
