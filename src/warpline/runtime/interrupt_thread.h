// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpline::runtime {

/// Stops EAL's interrupt thread for the rest of the process, before rte_eal_cleanup(): that unmaps the handles of
/// interrupts that drivers left registered (net_memif leaves its listening socket), and the thread would read them at
/// its next wake-up. Once in a process, from the control thread, with the EAL running and all ports closed. Returns
/// false if the thread did not stop within a second because a driver's callback keeps it.
[[nodiscard]] bool park_interrupt_thread();

}  // namespace warpline::runtime
