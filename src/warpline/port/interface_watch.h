// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace warpline::port {

// Drivers that sit on a network interface of the kernel's (net_af_packet, net_af_xdp, net_tap, net_pcap) have no event
// for its end: it is deleted, with its pair or its container, or goes to another network namespace. The kernel tells it
// to a netlink socket, which DPDK's interrupt thread looks at. `watch_interface` and `end_interface_watch` are for the
// control thread, with the EAL running.

/// `watch_interface` has `gone` called with `name` on DPDK's interrupt thread when the interface of this index goes.
/// All interfaces have the same `gone`. Without a netlink socket nothing is watched.
void watch_interface(unsigned index, const std::string& name, void (*gone)(const std::string& name));
/// `end_interface_watch` forgets the interface; when it returns, `gone` is not called for it any more.
void end_interface_watch(unsigned index);

}  // namespace warpline::port
