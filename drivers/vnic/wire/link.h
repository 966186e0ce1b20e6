// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace warpline::vnic {

/// A port's link, as its wire sees it. Any thread.
struct Link {
  std::atomic<bool> up{false};          ///< started, and not set down by the application
  std::atomic<bool> interrupts{false};  ///< the application asked for them
  std::atomic<bool> moved{false};       ///< its interrupt was raised
};

/// Eventfd of all ports, which wakes EAL's interrupt thread (device/link_interrupt.h); -1 until it is opened, which it
/// then stays for as long as the process lives.
inline std::atomic<int> link_event{-1};

/// For a port whose application asked for it. Any thread; a write of eight bytes to the eventfd.
void raise_link_interrupt(Link& link);

}  // namespace warpline::vnic
