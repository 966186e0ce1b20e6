// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace warpline::page {

/// The unit that a key names by its end or its beginning: "launch_us" is in "us", "ns_per_packet" in "ns per packet".
/// "" if it names none.
[[nodiscard]] std::string unit_in(std::string_view key);

/// True for keys whose values are parts of a whole or quotients, whatever the unit around them is.
[[nodiscard]] bool is_ratio(std::string_view key);

/// The unit of a member: what its key names, else `around`, which the objects around it say.
[[nodiscard]] std::string unit_of(std::string_view key, const std::string& around);

}  // namespace warpline::page
