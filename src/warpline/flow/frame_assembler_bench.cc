// SPDX-License-Identifier: Apache-2.0
// Packets of 1 KiB payload out of memory into frames, against the copies alone.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "warpline/flow/flow_testing.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/packet/udp_frame.h"

namespace warpline::flow {
namespace {

constexpr std::uint32_t kPayload = 1024;
constexpr std::uint32_t kPackets = 1024;
constexpr std::uint32_t kFrames = 8;
constexpr std::size_t kHeader = 8;
/// As mbufs lie: headroom, then the packet.
constexpr std::size_t kStride = 2048 + 128;

/// Packets of eight frames, numbered on from round to round.
class PacketsInMemory {
 public:
  explicit PacketsInMemory(std::size_t offset) : offset_(offset), bytes_(std::size_t{kFrames} * kPackets * kStride) {
    Random random(1);
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random.next());
  }
  void number(std::uint64_t round) {
    for (std::uint64_t i = 0; i < kFrames * kPackets; ++i) packet::store_be64(at(i), round * kFrames * kPackets + i);
  }
  [[nodiscard]] std::uint8_t* at(std::uint64_t i) { return bytes_.data() + i * kStride + offset_; }

 private:
  std::size_t offset_;
  std::vector<std::uint8_t> bytes_;
};

void assemble(benchmark::State& state, const std::string& more) {
  const FrameDescription description =
      *parse_frame_description("format=counter,packets=1024,payload=1024,window=4" + more);
  const AlignedMemory memory(256 << 20);
  FrameAssembler assembler = *FrameAssembler::create(description, PacketForm::datagram, memory.bytes());
  FrameQueue queue = assembler.queue();
  PacketsInMemory packets(42);
  std::uint64_t round = 0;
  for (auto _ : state) {
    state.PauseTiming();
    packets.number(round++);
    state.ResumeTiming();
    for (std::uint64_t i = 0; i < kFrames * kPackets; ++i) {
      if (assembler.place({packets.at(i), kHeader + kPayload}, round) != Placement::placed) std::abort();
      if (i % 32 != 31) continue;
      while (const Frame* frame = queue.next()) queue.release(frame->buffer);
    }
  }
  if (assembler.counts().complete != round * kFrames) std::abort();
  state.SetItemsProcessed(static_cast<std::int64_t>(round * kFrames * kPackets));
}
BENCHMARK_CAPTURE(assemble, one_stream, "");
BENCHMARK_CAPTURE(assemble, streams_by_field, ",stream=0:16,streams=4");

/// The same bytes to the same places.
void copies_alone(benchmark::State& state) {
  const AlignedMemory memory(256 << 20);
  PacketsInMemory packets(42);
  std::uint64_t round = 0;
  std::size_t length = kPayload;
  benchmark::DoNotOptimize(length);  // a length that the compiler knows makes of a copy a slower one
  for (auto _ : state) {
    state.PauseTiming();
    packets.number(round++);
    state.ResumeTiming();
    for (std::uint64_t i = 0; i < kFrames * kPackets; ++i) {
      const std::uint64_t to = (round * kFrames * kPackets + i) % (250 * 1024) * kPayload;
      std::memcpy(memory.bytes().data() + to, packets.at(i) + kHeader, length);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(round * kFrames * kPackets));
}
BENCHMARK(copies_alone);

}  // namespace
}  // namespace warpline::flow
