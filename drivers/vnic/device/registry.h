// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "vnic/device/device.h"

namespace warpline::vnic {

/// All net_vnic ports of the process, so that wires find their ends. Control threads only; the lock is recursive, and a
/// device found stays while it is held.
[[nodiscard]] std::unique_lock<std::recursive_mutex> lock_registry();

void register_device(Device& device);    ///< and joins it with those that wait for it
void unregister_device(Device& device);  ///< and cuts it off those that send to it, each under its egress lock
[[nodiscard]] Device* find_device(std::string_view name);
[[nodiscard]] Device* find_device(std::uint16_t port_id);
/// One whose link has moved (Link::moved, cleared), or null.
[[nodiscard]] Device* find_moved_link();
/// Those whose wire leads to a port of that name.
[[nodiscard]] std::vector<Device*> find_senders_to(std::string_view name);

}  // namespace warpline::vnic
