// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warpline {

/// UDP payloads of message/, as the program's own code writes them: every type, every part of a session's packet.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> message_packets();

/// The same, `each` times, changed by `seed`: bytes flipped, cut off, added, or all random.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> damaged_message_packets(std::uint64_t seed, int each);

/// What the program's parsers say of a UDP payload: "ok", "truncated", "not_ours", "version", "type" or "malformed".
[[nodiscard]] std::string_view verdict_of_message(const std::vector<std::uint8_t>& payload);

}  // namespace warpline
