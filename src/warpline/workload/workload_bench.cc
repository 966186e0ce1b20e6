// SPDX-License-Identifier: Apache-2.0
// Time a packet of each workload, over a burst of frames whose headers are in the cache.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "warpline/packet/frame_testing.h"
#include "warpline/workload/with_workload.h"

namespace warpline::workload {
namespace {

constexpr std::size_t kBurst = 64;

void BM_Workload(benchmark::State& state, WorkloadKind kind, std::size_t payload) {
  const packet::FrameBytes bytes =
      packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(payload))));
  std::vector<packet::FrameBytes> frames(kBurst, bytes);
  with_workload(kind, Nanos{0}, 1500, [&](auto work) {
    for (auto _ : state) {
      std::uint64_t dropped = 0;
      for (packet::FrameBytes& frame : frames) {
        Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
        dropped += is_drop(work({&segment, 1, segment.length}));
      }
      benchmark::DoNotOptimize(dropped);
      benchmark::ClobberMemory();
      if (dropped != 0) return state.SkipWithError("a sound frame was dropped");
    }
  });
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBurst));
}
BENCHMARK_CAPTURE(BM_Workload, none, WorkloadKind::none, 18);
BENCHMARK_CAPTURE(BM_Workload, mac_swap, WorkloadKind::mac_swap, 18);
BENCHMARK_CAPTURE(BM_Workload, count, WorkloadKind::count, 18);
BENCHMARK_CAPTURE(BM_Workload, checksum_60, WorkloadKind::checksum, 18);
BENCHMARK_CAPTURE(BM_Workload, checksum_1514, WorkloadKind::checksum, 1472);

}  // namespace
}  // namespace warpline::workload
