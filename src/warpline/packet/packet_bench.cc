// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>

#include "warpline/packet/frame_testing.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/responder.h"
#include "warpline/packet/verify.h"

namespace warpline::packet {
namespace {

/// `size` bytes of Ethernet frame in all.
FrameBytes udp_frame(std::int64_t size) {
  return with_checksums(ipv4_frame(kProtocolUdp, udp_datagram(counting(static_cast<std::size_t>(size) - 42))));
}

/// A burst, as the data path has it: the same header again and again would wait for its own stores.
void swap_macs_of_a_burst(benchmark::State& state) {
  constexpr std::size_t kBurst = 64;
  constexpr std::size_t kStride = 192;
  FrameBytes burst = counting(kBurst * kStride);
  FrameBytes expected = burst;
  std::swap_ranges(expected.begin(), expected.begin() + 6, expected.begin() + 6);
  swap_macs(burst.data());
  if (burst != expected) std::abort();
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBurst; ++i) swap_macs(burst.data() + i * kStride);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kBurst));
}
BENCHMARK(swap_macs_of_a_burst);

void parse_frame(benchmark::State& state, const FrameBytes& bytes, const std::vector<std::uint32_t>& cuts) {
  SegmentedFrame frame(bytes, cuts);
  const FrameRef ref = frame.ref();
  if (parse(ref).verdict != Verdict::forward) std::abort();
  for (auto _ : state) {
    benchmark::DoNotOptimize(parse(ref));
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(parse_frame, udp4, udp_frame(64), {});
BENCHMARK_CAPTURE(parse_frame, udp4_cut_in_l4, udp_frame(64), {36});
BENCHMARK_CAPTURE(parse_frame, tcp4_with_options, ipv4_frame(kProtocolTcp, tcp_segment({}, FrameBytes(12, 1))), {});
BENCHMARK_CAPTURE(parse_frame, udp6, ipv6_frame(kProtocolUdp, udp_datagram(counting(16))), {});

void verify_frame(benchmark::State& state) {
  SegmentedFrame frame(udp_frame(state.range(0)));
  const FrameRef ref = frame.ref();
  if (verdict_of(ref) != Verdict::forward) std::abort();
  for (auto _ : state) {
    benchmark::DoNotOptimize(verdict_of(ref));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}
BENCHMARK(verify_frame)->Arg(64)->Arg(590)->Arg(1514)->Arg(9014);

void not_for_the_responder(benchmark::State& state) {
  const Responder responder(kTestDestinationMac, {kTestDestinationV4, 24});
  SegmentedFrame frame(udp_frame(64));
  const FrameRef ref = frame.ref();
  if (responder.answer(ref)) std::abort();
  for (auto _ : state) {
    benchmark::DoNotOptimize(responder.answer(ref));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(not_for_the_responder);

}  // namespace
}  // namespace warpline::packet
