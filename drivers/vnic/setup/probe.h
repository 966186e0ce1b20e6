// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <rte_ether.h>

namespace warpline::vnic {

/// A port's first address: locally administered, of its name alone.
[[nodiscard]] rte_ether_addr address_of_name(std::string_view name);

}  // namespace warpline::vnic
