// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_version.h>
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#include <rte_ip6.h>
#endif

#include "warpline/packet/headers/ipv6.h"

namespace warpline::router {

// IPv6 addresses as rte_lpm6 and rte_fib6 take them. DPDK 24.11 gave them a type, whose bytes are the same. Which calls
// say const differs from one to the next and by release; all of them only read.

#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
inline rte_ipv6_addr* dpdk_address(const Ipv6Address* address) {
  return reinterpret_cast<rte_ipv6_addr*>(const_cast<Ipv6Address*>(address));
}
inline rte_ipv6_addr* dpdk_addresses(const Ipv6Address* addresses) { return dpdk_address(addresses); }
#else
inline const std::uint8_t* dpdk_address(const Ipv6Address* address) { return address->bytes.data(); }
inline std::uint8_t (*dpdk_addresses(const Ipv6Address* addresses))[sizeof(Ipv6Address)] {
  return reinterpret_cast<std::uint8_t(*)[sizeof(Ipv6Address)]>(const_cast<Ipv6Address*>(addresses));
}
#endif

}  // namespace warpline::router
