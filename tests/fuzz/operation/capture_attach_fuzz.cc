// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a process and one that captures its packets say to each other: none, or a message whose bytes are
// these again; a filter that came so ends with every frame and reads no byte beyond those that were captured.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "warpline/capture/attached/attach_messages.h"
#include "warpline/capture/packet_filter.h"

namespace capture = warpline::capture;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  const auto is_these = [&](const capture::AttachBytes& written) { return std::ranges::equal(written, bytes); };
  if (const auto welcome = capture::read_welcome(bytes); welcome && !is_these(capture::to_bytes(*welcome)))
    std::abort();
  if (const auto why = capture::read_refusal(bytes); why && !is_these(capture::refusal(*why))) std::abort();
  if (const auto totals = capture::read_totals(bytes); totals && !is_these(capture::to_bytes(*totals))) std::abort();
  const auto request = capture::read_request(bytes);
  if (request && capture::read_request(capture::to_bytes(*request)) != request) std::abort();
  const auto filter =
      capture::PacketFilter::of_program(request ? std::span<const std::uint8_t>(request->filter) : bytes);
  if (!filter) return 0;
  for (const std::size_t captured : {0, 1, 60}) {
    const std::vector<std::uint8_t> frame(captured, 0x45);  // of just so many bytes
    (void)filter->matches(frame.data(), 60, static_cast<std::uint32_t>(captured));
  }
  return 0;
}
