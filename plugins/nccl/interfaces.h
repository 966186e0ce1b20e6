// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "nccl/nic.h"
#include "warpline/base/result.h"

namespace warpline::nccl {

/// Whether NCCL_SOCKET_IFNAME takes the interface: prefixes separated by commas, `=` before them for whole names, `^`
/// in front of all for those to leave out.
[[nodiscard]] bool takes(std::string_view pattern, std::string_view name);

/// Those that are to be used, of `all`: as the pattern says, or without one all but loopback and docker's, or these if
/// there are no others, as NCCL chooses for its own sockets.
[[nodiscard]] std::vector<NicFacts> choose(std::vector<NicFacts> all, std::string_view pattern);

/// Those of this machine that are up, once each, with their first address of the family (AF_INET, AF_INET6; empty: IPv4
/// before IPv6). Addresses of a link alone are left out. Environment error: the kernel does not tell.
[[nodiscard]] Result<std::vector<NicFacts>> list_interfaces(std::string_view family);

}  // namespace warpline::nccl
