// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace warpline::port {

// A device may go while it is in use: unplugged, or asked back by the kernel for whoever unbinds it from vfio-pci,
// which waits until the process lets go of it; or the interface of the kernel's that a port is on. Or it is reset, by
// itself or with the function that it is a part of, and nothing of what was set up holds. Drivers, or the kernel, tell
// that on a thread of DPDK's; a run then ends with a full report.

/// `any_removed` says whether a port that is open, or was to the end of its run, has lost its device. Any thread, at
/// any time: one relaxed load.
[[nodiscard]] bool any_removed();

/// `removal_notes` returns a line for each of these ports. Control thread.
[[nodiscard]] std::vector<std::string> removal_notes();

}  // namespace warpline::port
