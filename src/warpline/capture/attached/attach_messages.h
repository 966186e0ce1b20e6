// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/capture/capture_totals.h"
#include "warpline/capture/capture_writer.h"
#include "warpline/capture/rings/capture_ring.h"

namespace warpline::capture {

// What a running process, and one that attaches to it to capture its packets, say to each other by a Unix socket, in
// whole datagrams of one machine: a request, then an answer; if that is a welcome, rings come with it. The capture ends
// with the socket's other direction, or its end, and then the process says what its sources left out. Readers return
// nothing if the bytes are not of this version of the program.

inline constexpr std::size_t kLargestAttachMessage = 65'536;
using AttachBytes = std::vector<std::uint8_t>;

/// What of which packets is wanted.
struct AttachRequest {
  bool traces = false;  ///< the way of one packet of a burst, a PacketTimes, in place of packets
  bool dropped_only = true;
  std::uint32_t one_in = 1;
  std::uint32_t snaplen = 256;
  AttachBytes filter{};  ///< PacketFilter::program()
  bool operator==(const AttachRequest&) const = default;
};

/// The rings that packets will be in.
struct AttachWelcome {
  std::uint32_t rings = 0;
  RingShape shape{};
  std::vector<CaptureInterface> interfaces{};
  bool operator==(const AttachWelcome&) const = default;
};

[[nodiscard]] AttachBytes to_bytes(const AttachRequest& request);
[[nodiscard]] AttachBytes to_bytes(const AttachWelcome& welcome);
/// Makes a refusal, which says why.
[[nodiscard]] AttachBytes refusal(std::string_view why);
[[nodiscard]] AttachBytes to_bytes(const SourceTotals& totals);

[[nodiscard]] std::optional<AttachRequest> read_request(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<AttachWelcome> read_welcome(std::span<const std::uint8_t> bytes);
/// Returns why a process refuses.
[[nodiscard]] std::optional<std::string> read_refusal(std::span<const std::uint8_t> bytes);
[[nodiscard]] std::optional<SourceTotals> read_totals(std::span<const std::uint8_t> bytes);

}  // namespace warpline::capture
