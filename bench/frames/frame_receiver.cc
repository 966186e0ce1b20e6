// SPDX-License-Identifier: Apache-2.0
// Our side of bench/frames/veth: SPEAD packets off a port become frames of one heap each, on one lcore.
//
//     frame_receiver PORT PACKETS PAYLOAD_BYTES HEAPS CPU
//
// The lcore runs on the processors that the process may use, all else on processor CPU. Each line on standard input is
// one measurement: from the first packet that comes until none has come for a while. Then every payload that arrived is
// compared with what bench/frames/heap_pattern.h says: a difference ends the program with 4. There is memory for HEAPS
// frames, all of which stay until then; those still open are compared with the next measurement's.
#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "heap_pattern.h"
#include "warpline/base/large_vector.h"
#include "warpline/base/time/clock.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/ingest/ingest_run.h"

namespace {

using namespace warpline;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kLook{100};
constexpr std::chrono::milliseconds kSilence{200};

/// Frames stay in memory until they are asked for.
struct KeepFrames {
  static constexpr bool kStateless = true;

  flow::FrameAssembler* assembler;

  Verdict operator()(FrameRef frame) const {
    (void)assembler->place(frame, 0);
    return Verdict::forward;
  }
  void merge(const KeepFrames& /*other*/) {}
};

std::uint64_t placed(const flow::FrameAssembler& assembler) {
  return assembler.counts().placements[static_cast<std::size_t>(flow::Placement::placed)];
}

struct Measured {
  std::uint64_t packets = 0;
  std::uint64_t timed = 0;  ///< behind those that were there when the first were seen
  double seconds = 0;       ///< from then to the last
};

/// Waits for packets, and for the end of them.
Measured watch(const flow::FrameAssembler& assembler) {
  const std::uint64_t before = placed(assembler);
  std::uint64_t seen = before;
  std::uint64_t first = before;
  Clock::time_point begin = Clock::now();
  Clock::time_point last = begin;
  while (seen == before || Clock::now() - last < kSilence) {
    std::this_thread::sleep_for(kLook);
    const std::uint64_t now = placed(assembler);
    if (now == seen) continue;
    last = Clock::now();
    if (seen == before) {
      first = now;
      begin = last;
    }
    seen = now;
  }
  return {seen - before, seen - first, std::chrono::duration<double>(last - begin).count()};
}

bool is_as_sent(const flow::Frame& frame, bench::HeapShape shape, const std::uint8_t* pattern) {
  for (std::uint32_t i = 0; i < shape.packets; ++i) {
    if (frame.mask[i] == 0) continue;
    const std::size_t at = std::size_t{i} * shape.payload;
    std::uint64_t stamp = 0;
    std::memcpy(&stamp, frame.data + at, sizeof(stamp));
    if (stamp != bench::stamp_of(shape, frame.first_sequence, i)) return false;
    if (std::memcmp(frame.data + at + 8, pattern + at + 8, shape.payload - 8) != 0) return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::cerr << "frame_receiver PORT PACKETS PAYLOAD_BYTES HEAPS CPU\n";
    return 2;
  }
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::stoul(arguments[i])); };
  const bench::HeapShape shape{number(2), number(3)};
  const std::uint64_t heap = std::uint64_t{shape.packets} * shape.payload;
  std::vector<std::uint8_t> pattern(heap);
  for (std::uint32_t i = 0; i < shape.packets; ++i) {
    bench::write_payload(pattern.data() + std::size_t{i} * shape.payload, shape, 0, i);
  }
  LargeVector<std::byte> memory((number(4) + 8) * (heap + shape.packets + 4096) + 65536);
  const auto description = flow::parse_frame_description(
      fmt::format("format=spead,packets={},payload={},window=4", shape.packets, shape.payload));
  if (!description) return std::cerr << description.error().message() << '\n', 2;
  auto assembler = flow::FrameAssembler::create(*description, flow::PacketForm::ethernet, memory);
  if (!assembler) return std::cerr << assembler.error().message() << '\n', 2;

  datapath::DatapathSettings settings;
  settings.ports.emplace_back().spec = arguments[1];
  ingest::IngestSettings receiving;
  receiving.path = ingest::IngestPath::zerocopy;
  runtime::RuntimeSettings cores;
  cores.lcores = 1;
  auto run = ingest::IngestRun::start(settings, receiving, KeepFrames{&*assembler}, cores);
  if (!run) return std::cerr << run.error().message() << '\n', 3;

  std::atomic<bool> stop = false;
  std::atomic<int> outcome = 0;
  std::thread watcher([&, cpu = number(5)] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    flow::FrameQueue frames = assembler->queue();
    for (std::string line; outcome == 0 && std::getline(std::cin, line);) {
      std::cout << "ready\n" << std::flush;
      const Measured measured = watch(*assembler);
      while (const flow::Frame* const frame = frames.next()) {
        if (!is_as_sent(*frame, shape, pattern.data())) outcome = 4;
        frames.release(frame->buffer);
      }
      std::cout << fmt::format(R"({{"packets": {}, "timed": {}, "seconds": {}}})", measured.packets, measured.timed,
                               measured.seconds)
                << '\n'
                << std::flush;
    }
    stop = true;
  });
  const Result<void> ended = (*run)->run(stop);
  watcher.join();
  if (!ended) return std::cerr << ended.error().message() << '\n', 3;
  return outcome;
}
