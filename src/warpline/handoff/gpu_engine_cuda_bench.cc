// SPDX-License-Identifier: Apache-2.0
// What a burst's way through a GPU engine costs, with pinned packets of 2 KiB and one thread that produces and
// consumes. For each engine: bursts of 16 and 64 packets, one burst in flight (its time is the latency) and a ring
// full.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/handoff/gpu_engine_testing.h"

namespace warpline::handoff {
namespace {

constexpr std::size_t kBuffer = 2048;
constexpr std::uint32_t kBuffers = 1U << 14;
constexpr std::size_t kBytes = kBuffer * kBuffers;

struct Unmap {
  void operator()(std::byte* memory) const { munmap(memory, kBytes); }
};

std::unique_ptr<std::byte, Unmap> map_buffers() {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return std::unique_ptr<std::byte, Unmap>(memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory));
}

void BM_GpuEngine(benchmark::State& state) {
  const auto kind = static_cast<EngineKind>(state.range(0));
  const auto count = static_cast<std::uint16_t>(state.range(1));
  const auto slots = static_cast<std::uint32_t>(state.range(2));
  state.SetLabel(std::string(name(kind)));
  if (!gpu::use_gpu(0)) return state.SkipWithError("no GPU");
  const auto memory = map_buffers();
  if (memory == nullptr) return state.SkipWithError("no memory");
  auto* const bytes = reinterpret_cast<std::uint8_t*>(memory.get());
  const auto registration = gpu::HostRegistration::create({memory.get(), kBytes});
  if (!registration) return state.SkipWithError(registration.error().message().c_str());
  const auto ring = *BurstRing::create({slots, count, count});
  GpuEngine engine(*ring, testing::TouchFirstWords{}, {.kind = kind, .burst = count});
  if (const Result<void> started = engine.start(); !started) {
    return state.SkipWithError(started.error().message().c_str());
  }
  std::uint32_t next = 0;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    while (Burst* const burst = ring->acquire()) {
      for (std::uint16_t i = 0; i < count; ++i, ++next) {
        std::uint8_t* const frame = bytes + next % kBuffers * kBuffer;
        burst->append(frame, frame, 64);
      }
      ring->publish();
      engine.on_published();
    }
    const Burst* done = ring->completed();
    while (done == nullptr) done = ring->completed();
    packets += done->packet_count();
    ring->release();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  if (engine.stop(Nanos{1'000'000'000}).bursts != 0) state.SkipWithError("the engine left bursts");
}
BENCHMARK(BM_GpuEngine)->ArgsProduct({{2, 3, 4}, {16, 64}, {1, 8, 32}})->UseRealTime();

}  // namespace
}  // namespace warpline::handoff
