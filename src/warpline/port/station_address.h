// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/address.h"
#include "warpline/port/port.h"

namespace warpline::port {

/// Returns the device's own MAC address; of a device without one, such as net_ring, one made up (IEEE 802: locally
/// administered), another one at each call. Control thread.
[[nodiscard]] MacAddress station_address(const Port& port);

}  // namespace warpline::port
