// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "warpline/capture/capture_source.h"
#include "warpline/capture/rings/capture_rings.h"

namespace warpline::capture {
namespace {

/// What the data path pays for one packet of 1514 bytes: as for a packet that is dropped, with a ring whose other side
/// keeps up, or with one that is full.
void take(benchmark::State& state, const char* expression, bool keeps_up) {
  const std::vector<std::uint8_t> frame(1514, 0x45);
  constexpr std::uint32_t kSnaplen = 256;
  const CaptureRings rings = *CaptureRings::make(1, RingShape::within(std::size_t{4} << 20, kSnaplen));
  CaptureSource source(1, *PacketFilter::compile(expression), rings.input(0), rings.shape());
  CaptureRingOutput output = rings.output(0);
  for (auto _ : state) {
    CapturedPacket* const packet = source.begin(Verdict::no_route);
    if (packet != nullptr) {
      std::memcpy(packet->bytes(), frame.data(), source.snaplen());
      *packet = {.length = 1514, .captured = source.snaplen(), .verdict = Verdict::no_route};
      source.end(*packet);
    }
    if (keeps_up && output.front() != nullptr) output.pop();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(take, all, "", true);
BENCHMARK_CAPTURE(take, all_into_a_full_ring, "", false);
BENCHMARK_CAPTURE(take, filter_matches, "ether[0] = 0x45", true);
BENCHMARK_CAPTURE(take, filter_does_not_match, "udp port 9", true);

}  // namespace
}  // namespace warpline::capture
