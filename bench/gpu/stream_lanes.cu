// SPDX-License-Identifier: Apache-2.0
// What lanes of TCP streams do alone on a GPU, as one JSON object: frames that lie ready are read, looked up, accepted
// and copied to their place in rings, with orders and records in pinned memory as a host has them. Rates are of payload
// in Gbit/s (10^9), from launch to end of one kernel that takes kBursts bursts a lane, medians of kSamples with lowest
// and highest; contenders take turns. Every byte of every ring is compared with what was sent after each timed launch.
// Beside them: a copy of as many bytes by a kernel that does nothing else, or by the copy engine where frames lie in
// pinned memory, and the ways of others: a thread a packet that copies byte by byte, and a copy call a packet.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "warpline/base/random.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/internal/lanes/lane_burst.cuh"

namespace {

using namespace warpline;
using namespace warpline::stream;

constexpr std::uint32_t kBurst = 512;
constexpr std::uint32_t kBursts = 8;
constexpr int kSamples = 7;
constexpr std::uint32_t kHeaders = 66;  ///< Ethernet, IPv4, TCP with timestamps
constexpr std::uint32_t kHeadroom = 128;
constexpr MacAddress kMac{{2, 0, 0, 0, 0, 1}};
constexpr LaneStation kStation{.own = {.mac = kMac}, .secret = 99};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "stream_lanes: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}
#define CHECK(call) check(call, #call)

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Eight bytes of a connection's stream.
__host__ __device__ std::uint64_t pattern(std::uint32_t connection, std::uint64_t word) {
  return mix64((std::uint64_t{connection} << 40) + word);
}
__host__ __device__ std::uint8_t byte_of(std::uint32_t connection, std::uint64_t offset) {
  return static_cast<std::uint8_t>(pattern(connection, offset >> 3) >> (offset & 7) * 8);
}

/// A frame to be made: its headers are a template's.
struct Plan {
  std::uint8_t* at;
  std::uint64_t offset;
  std::uint32_t connection;  ///< of the lane, for ports
  std::uint32_t stream;      ///< of all, for bytes
};

__global__ void make_frames(const Plan* plans, std::size_t count, const std::uint8_t* headers, std::uint32_t mss) {
  for (std::size_t i = blockIdx.x; i < count; i += gridDim.x) {
    const Plan plan = plans[i];
    for (std::uint32_t k = threadIdx.x; k < kHeaders; k += blockDim.x) plan.at[k] = headers[k];
    __syncthreads();
    if (threadIdx.x == 0) {
      packet::store_be16(plan.at + 34, static_cast<std::uint16_t>(1000 + plan.connection));
      packet::store_be32(plan.at + 38, static_cast<std::uint32_t>(plan.offset));
    }
    for (std::uint32_t k = threadIdx.x; k < mss; k += blockDim.x) {
      plan.at[kHeaders + k] = byte_of(plan.stream, plan.offset + k);
    }
    __syncthreads();
  }
}

__global__ void compare_rings(const std::uint8_t* rings, std::uint64_t ring_bytes, std::uint64_t streams,
                              std::uint64_t length, unsigned long long* wrong) {
  for (std::uint64_t stream = blockIdx.x; stream < streams; stream += gridDim.x) {
    unsigned long long mine = 0;
    for (std::uint64_t k = threadIdx.x; k < length; k += blockDim.x) {
      mine += rings[2 * ring_bytes * stream + k] != byte_of(static_cast<std::uint32_t>(stream), k);
    }
    if (mine != 0) atomicAdd(wrong, mine);
  }
}

__global__ void copy_words(uint4* to, const uint4* from, std::size_t words) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 3 * step < words; i += 4 * step) {
    const uint4 a = __ldcs(from + i), b = __ldcs(from + i + step), c = __ldcs(from + i + 2 * step),
                d = __ldcs(from + i + 3 * step);
    to[i] = a, to[i + step] = b, to[i + 2 * step] = c, to[i + 3 * step] = d;
  }
  for (; i < words; i += step) to[i] = from[i];
}

/// One thread a packet, with a loop over its bytes.
__global__ void thread_a_packet(const Plan* plans, std::size_t count, std::uint8_t* rings, std::uint64_t ring_bytes,
                                std::uint32_t mss) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::uint8_t* const frame = plans[i].at;
  std::uint8_t* const to = rings + 2 * ring_bytes * plans[i].stream + packet::load_be32(frame + 38);
  for (std::uint32_t k = 0; k < mss; ++k) to[k] = frame[kHeaders + k];
}

struct Interval {
  double low, median, high;
};
Interval of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {samples.front(), samples[samples.size() / 2], samples.back()};
}

struct Case {
  std::string name;
  std::uint32_t lanes, connections, mss;  ///< connections of each lane
  bool pinned;
  std::uint32_t lost, swapped;  ///< in 1/1000 of the segments; what is lost comes in the next burst
};

/// A case's memory and orders, made once; each run begins the connections anew.
class Run {
 public:
  explicit Run(const Case& what) : case_(what) {
    frames_ = std::size_t{case_.lanes} * kBurst * kBursts;
    per_connection_ = std::uint64_t{kBurst} * kBursts / case_.connections * case_.mss;
    std::uint64_t ring = 1024;
    while (ring < per_connection_ + 16) ring *= 2;
    shape_ = {.connections = case_.connections,
              .burst = kBurst,
              .slots = kBursts,
              .changes = case_.connections,
              .ring_bytes = ring};
    slot_bytes_ = (kHeadroom + kHeaders + case_.mss + 255) / 256 * 256;
    const LaneLayout layout(shape_);
    if (case_.pinned) {
      CHECK(cudaHostAlloc(&memory_, frames_ * slot_bytes_, cudaHostAllocDefault));
    } else {
      CHECK(cudaMalloc(&memory_, frames_ * slot_bytes_));
    }
    CHECK(cudaHostAlloc(&shared_, case_.lanes * layout.shared_bytes(), cudaHostAllocDefault));
    std::memset(shared_, 0, case_.lanes * layout.shared_bytes());
    CHECK(cudaMalloc(&own_, case_.lanes * layout.own_bytes()));
    CHECK(cudaMalloc(&rings_, rings_bytes()));
    CHECK(cudaMalloc(&views_, case_.lanes * sizeof(LaneView)));
    CHECK(cudaMalloc(&plans_, frames_ * sizeof(Plan)));
    CHECK(cudaMalloc(&wrong_, sizeof(unsigned long long)));
    std::vector<LaneView> views;
    for (std::uint32_t lane = 0; lane < case_.lanes; ++lane) {
      views.push_back(layout.view(shared_ + lane * layout.shared_bytes(), own_ + lane * layout.own_bytes(),
                                  rings_ + 2 * shape_.ring_bytes * case_.connections * lane, kStation));
    }
    CHECK(cudaMemcpy(views_, views.data(), views.size() * sizeof(LaneView), cudaMemcpyHostToDevice));
    std::vector<Plan> plans;
    for (std::uint32_t lane = 0; lane < case_.lanes; ++lane) fill(lane, views[lane], plans);
    frames_ = plans.size();
    CHECK(cudaMemcpy(plans_, plans.data(), plans.size() * sizeof(Plan), cudaMemcpyHostToDevice));
    make();
    host_views_ = std::move(views);
    prepare_opening();
  }
  ~Run() {
    if (case_.pinned)
      cudaFreeHost(memory_);
    else
      cudaFree(memory_);
    cudaFreeHost(shared_);
    cudaFreeHost(opening_shared_);
    for (void* memory : {static_cast<void*>(opening_), static_cast<void*>(own_), static_cast<void*>(rings_),
                         static_cast<void*>(views_), static_cast<void*>(plans_), static_cast<void*>(wrong_)})
      cudaFree(memory);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] std::size_t rings_bytes() const {
    return std::size_t{2} * shape_.ring_bytes * case_.connections * case_.lanes;
  }
  [[nodiscard]] std::uint64_t payload() const { return per_connection_ * case_.connections * case_.lanes; }

  /// Returns Gbit/s of payload; negative if something was not right.
  double lanes() {
    begin_anew();
    const double time = timed([&] { launch(views_, 1, kBursts + 1); });
    std::uint64_t stored = 0;
    for (const LaneView& view : host_views_) {
      for (std::uint64_t sequence = 1; sequence <= kBursts; ++sequence) {
        stored += SlotLayout(shape_).slot(view.slots, sequence).result->bytes;
      }
    }
    return stored == payload() && right() ? 8.0 * static_cast<double>(payload()) / time / 1e9 : -1;
  }
  double threads() {
    begin_anew();
    const double time = timed([&] {
      thread_a_packet<<<static_cast<unsigned>((frames_ + 127) / 128), 128>>>(plans_, frames_, rings_, shape_.ring_bytes,
                                                                             case_.mss);
      CHECK(cudaGetLastError());
    });
    return right() ? 8.0 * static_cast<double>(payload()) / time / 1e9 : -1;
  }
  /// A copy call a packet, of the first so many.
  double calls() {
    const std::size_t count = std::min<std::size_t>(frames_, 20'000);
    std::vector<Plan> plans(count);
    CHECK(cudaMemcpy(plans.data(), plans_, count * sizeof(Plan), cudaMemcpyDeviceToHost));
    const double begun = seconds();
    for (const Plan& plan : plans) {
      CHECK(cudaMemcpyAsync(rings_ + 2 * shape_.ring_bytes * plan.stream + plan.offset, plan.at + kHeaders, case_.mss,
                            cudaMemcpyDefault, nullptr));
    }
    CHECK(cudaDeviceSynchronize());
    return 8.0 * static_cast<double>(count * case_.mss) / (seconds() - begun) / 1e9;
  }
  /// As many bytes as there are of payload, by a kernel that does nothing else, or, of pinned memory, by the copy
  /// engine.
  double plain_copy() {
    const std::size_t bytes = std::min<std::size_t>(payload() / 64 * 64, frames_ * slot_bytes_);
    const double time = timed([&] {
      if (case_.pinned) {
        CHECK(cudaMemcpyAsync(rings_, memory_, bytes, cudaMemcpyHostToDevice, nullptr));
      } else {
        copy_words<<<1056, 512>>>(reinterpret_cast<uint4*>(rings_), reinterpret_cast<const uint4*>(memory_),
                                  bytes / 16);
        CHECK(cudaGetLastError());
      }
    });
    return 8.0 * static_cast<double>(bytes) / time / 1e9;
  }

 private:
  template <typename F>
  static double timed(F&& work) {
    cudaEvent_t begin = nullptr, end = nullptr;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(begin));
    work();
    CHECK(cudaEventRecord(end));
    CHECK(cudaDeviceSynchronize());
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return milliseconds / 1e3;
  }

  void launch(const LaneView* views, std::uint64_t first, std::uint64_t end) const {
    void* arguments[] = {&views, &first, &end};
    CHECK(cudaLaunchKernel(stream_lanes_kernel(), dim3(case_.lanes), dim3(kLaneThreads), arguments, 0, nullptr));
  }

  void fill(std::uint32_t lane, const LaneView& view, std::vector<Plan>& plans) {
    Random random(lane + 1);
    struct Sent {
      std::uint32_t connection;
      std::uint64_t offset;
    };
    std::vector<Sent> order;
    std::vector<std::uint64_t> next(case_.connections, 0);
    const std::uint32_t each = kBurst * kBursts / case_.connections;
    // In trains of eight, as segmentation offloads make them.
    for (std::uint32_t round = 0; round < each; round += 8) {
      for (std::uint32_t connection = 0; connection < case_.connections; ++connection) {
        for (std::uint32_t k = 0; k < std::min(8U, each - round); ++k) {
          order.push_back({connection, next[connection]});
          next[connection] += case_.mss;
        }
      }
    }
    std::vector<Sent> arrived;
    std::vector<std::pair<std::size_t, Sent>> later;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (random.below(1000) < case_.lost) {
        later.emplace_back(i + kBurst / 2, order[i]);
      } else {
        arrived.push_back(order[i]);
        if (random.below(1000) < case_.swapped)
          std::swap(arrived.back(), arrived[arrived.size() - std::min<std::size_t>(arrived.size(), 4)]);
      }
      while (!later.empty() && later.front().first <= i) {
        arrived.push_back(later.front().second);
        later.erase(later.begin());
      }
    }
    for (const auto& [at, sent] : later) arrived.push_back(sent);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      const std::uint64_t sequence = 1 + i / kBurst;
      const BurstSlot slot = SlotLayout(shape_).slot(view.slots, sequence);
      std::uint8_t* const at = memory_ + (std::size_t{lane} * kBurst * kBursts + i) * slot_bytes_ + kHeadroom;
      slot.segments[i % kBurst] = {at, kHeaders + case_.mss, 0, Verdict::forward};
      slot.checksums_right[i % kBurst / 32] |= 1U << i % 32;
      view.ready[sequence & (kBursts - 1)].value = sequence << 32 | (i % kBurst + 1);
      *slot.order = {Nanos{1'000'000}, 0, 0};
      plans.push_back({at, arrived[i].offset, arrived[i].connection, lane * case_.connections + arrived[i].connection});
    }
  }

  /// A burst of no frames that opens the connections of a lane, in slots of its own.
  void prepare_opening() {
    LaneShape shape = shape_;
    shape.slots = 1;
    shape.burst = 1;
    const LaneLayout layout(shape);
    CHECK(cudaHostAlloc(&opening_shared_, case_.lanes * layout.shared_bytes(), cudaHostAllocDefault));
    std::memset(opening_shared_, 0, case_.lanes * layout.shared_bytes());
    std::vector<LaneView> views;
    for (std::uint32_t lane = 0; lane < case_.lanes; ++lane) {
      LaneView view = host_views_[lane];
      const LaneView own = layout.view(opening_shared_ + lane * layout.shared_bytes(), nullptr, nullptr, kStation);
      view.shape = shape;
      view.ready = own.ready;
      view.done = own.done;
      view.stop = own.stop;
      view.slots = own.slots;
      const BurstSlot slot = SlotLayout(shape).slot(view.slots, 1);
      *slot.order = {Nanos{1'000'000}, case_.connections, 0};
      for (std::uint32_t i = 0; i < case_.connections; ++i) {
        ConnectionChange& change = slot.changes[i];
        change.connection = i;
        change.generation = 1;
        change.add = true;
        change.timestamps = true;
        change.acknowledgement = 77;
        change.window_end = shape_.ring_bytes;
        change.key.local[1] = kMappedIpv4 | 0x0a00'0001;
        change.key.remote[1] = kMappedIpv4 | 0x0a00'0002;
        change.key.local_port = 5001;
        change.key.remote_port = static_cast<std::uint16_t>(1000 + i);
      }
      view.ready[0].value = std::uint64_t{1} << 32;
      views.push_back(view);
    }
    CHECK(cudaMalloc(&opening_, case_.lanes * sizeof(LaneView)));
    CHECK(cudaMemcpy(opening_, views.data(), views.size() * sizeof(LaneView), cudaMemcpyHostToDevice));
  }

  void make() {
    packet::TcpFrame frame;
    frame.destination_mac = kMac;
    frame.source_mac = {{2, 0, 0, 0, 0, 2}};
    frame.source = Ipv4Address{{10, 0, 0, 2}};
    frame.destination = Ipv4Address{{10, 0, 0, 1}};
    frame.tcp.destination_port = 5001;
    frame.tcp.flags = packet::kTcpAck;
    frame.tcp.acknowledgement = 77;
    frame.tcp.options_length = 12;
    frame.tcp.options[0] = frame.tcp.options[1] = packet::kTcpOptionNop;
    frame.tcp.options[2] = packet::kTcpOptionTimestamps;
    frame.tcp.options[3] = 10;
    std::vector<std::uint8_t> bytes(kHeaders + case_.mss);
    static_cast<void>(packet::emit(frame, bytes, case_.mss, {}));
    std::uint8_t* headers = nullptr;
    CHECK(cudaMalloc(&headers, kHeaders));
    CHECK(cudaMemcpy(headers, bytes.data(), kHeaders, cudaMemcpyHostToDevice));
    make_frames<<<2048, 256>>>(plans_, frames_, headers, case_.mss);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(headers));
  }

  void begin_anew() {
    const LaneLayout layout(shape_);
    CHECK(cudaMemset(own_, 0, case_.lanes * layout.own_bytes()));
    CHECK(cudaMemset2D(own_ + layout.places_begin(), layout.own_bytes(), 0xff,
                       places_of(shape_) * sizeof(std::uint32_t), case_.lanes));
    CHECK(cudaMemset(rings_, 0, rings_bytes()));
    launch(opening_, 1, 2);
    CHECK(cudaDeviceSynchronize());
  }

  bool right() {
    CHECK(cudaMemset(wrong_, 0, sizeof(unsigned long long)));
    compare_rings<<<2048, 256>>>(rings_, shape_.ring_bytes, std::uint64_t{case_.lanes} * case_.connections,
                                 per_connection_, wrong_);
    unsigned long long wrong = 1;
    CHECK(cudaMemcpy(&wrong, wrong_, sizeof(wrong), cudaMemcpyDeviceToHost));
    return wrong == 0;
  }

  Case case_;
  LaneShape shape_;
  std::size_t frames_;
  std::uint64_t per_connection_;
  std::size_t slot_bytes_;
  std::uint8_t* memory_ = nullptr;
  std::byte* shared_ = nullptr;
  std::byte* own_ = nullptr;
  std::uint8_t* rings_ = nullptr;
  LaneView* views_ = nullptr;
  LaneView* opening_ = nullptr;
  std::byte* opening_shared_ = nullptr;
  Plan* plans_ = nullptr;
  unsigned long long* wrong_ = nullptr;
  std::vector<LaneView> host_views_;
};

/// From a burst's ready word to its done word, in microseconds: of a lane that stays, with one burst at a time, as the
/// host sees it.
std::vector<double> latencies(std::uint32_t frames, bool pinned) {
  constexpr std::uint32_t kRounds = 2000;
  constexpr std::uint32_t kMss = 1448;
  constexpr std::uint64_t kRing = 8 << 20;
  const LaneShape shape{.connections = 1, .burst = kBurst, .slots = 2, .changes = 1, .ring_bytes = kRing};
  const LaneLayout layout(shape);
  std::byte *shared = nullptr, *own = nullptr;
  std::uint8_t *rings = nullptr, *memory = nullptr, *made = nullptr;
  LaneView* views = nullptr;
  CHECK(cudaHostAlloc(&shared, layout.shared_bytes(), cudaHostAllocDefault));
  std::memset(shared, 0, layout.shared_bytes());
  CHECK(cudaHostAlloc(&views, sizeof(LaneView), cudaHostAllocDefault));
  const std::size_t frames_bytes = std::size_t{kRounds} * frames * 2048;
  CHECK(cudaHostAlloc(&made, frames_bytes, cudaHostAllocDefault));
  CHECK(cudaMalloc(&memory, frames_bytes));
  CHECK(cudaMalloc(&own, layout.own_bytes()));
  CHECK(cudaMemset(own, 0, layout.own_bytes()));
  CHECK(cudaMemset(own + layout.places_begin(), 0xff, places_of(shape) * sizeof(std::uint32_t)));
  CHECK(cudaMalloc(&rings, 2 * kRing));
  *views = layout.view(shared, own, rings, kStation);
  CHECK(cudaDeviceSynchronize());
  packet::TcpFrame frame;
  frame.destination_mac = kMac;
  frame.source_mac = {{2, 0, 0, 0, 0, 2}};
  frame.source = Ipv4Address{{10, 0, 0, 2}};
  frame.destination = Ipv4Address{{10, 0, 0, 1}};
  frame.tcp.source_port = 1000;
  frame.tcp.destination_port = 5001;
  frame.tcp.flags = packet::kTcpAck;
  for (std::size_t i = 0; i < std::size_t{kRounds} * frames; ++i) {
    frame.tcp.sequence = static_cast<std::uint32_t>(i * kMss);
    static_cast<void>(packet::emit(frame, {made + 2048 * i, 54 + kMss}, kMss, {}));
  }
  CHECK(cudaMemcpy(memory, made, frames_bytes, cudaMemcpyHostToDevice));
  std::uint8_t* next = pinned ? made : memory;
  std::uint64_t first = 1, end = kRounds + 1;
  const LaneView* lanes = views;
  void* arguments[] = {&lanes, &first, &end};
  CHECK(cudaLaunchKernel(stream_lanes_kernel(), dim3(1), dim3(kLaneThreads), arguments, 0, nullptr));
  std::vector<double> times;
  std::uint64_t offset = 0;
  for (std::uint64_t sequence = 1; sequence <= kRounds; ++sequence) {
    const BurstSlot slot = SlotLayout(shape).slot(views->slots, sequence);
    *slot.order = {Nanos{1'000'000}, sequence == 1 ? 1U : 0U, 1};
    slot.changes[0] = {};
    slot.changes[0].generation = 1;
    slot.changes[0].add = true;
    slot.changes[0].window_end = kRing;
    slot.changes[0].key.local[1] = kMappedIpv4 | 0x0a00'0001;
    slot.changes[0].key.remote[1] = kMappedIpv4 | 0x0a00'0002;
    slot.changes[0].key.local_port = 5001;
    slot.changes[0].key.remote_port = 1000;
    slot.tells[0] = {0, 1, offset + kRing, offset};
    for (std::uint32_t i = 0; i < frames; ++i) {
      slot.segments[i] = {next, 54 + kMss, 0, Verdict::forward};
      next += 2048;
      slot.checksums_right[i / 32] |= 1U << i % 32;
      offset += kMss;
    }
    const std::size_t at = sequence & 1;
    const double begun = seconds();
    std::atomic_ref(views->ready[at].value).store(sequence << 32 | frames, std::memory_order_release);
    while (std::atomic_ref(views->done[at].value).load(std::memory_order_acquire) != sequence << 32) {
      if (seconds() - begun > 5) {
        std::fprintf(stderr, "stream_lanes: a lane does not answer\n");
        std::exit(4);
      }
    }
    if (sequence > 100) times.push_back((seconds() - begun) * 1e6);
    if (slot.result->bytes != std::uint64_t{frames} * kMss || slot.result->records != 1 ||
        slot.records[0].state.next != offset) {
      std::fprintf(stderr, "stream_lanes: a burst was not taken whole\n");
      std::exit(4);
    }
  }
  CHECK(cudaDeviceSynchronize());
  std::ranges::sort(times);
  cudaFreeHost(shared), cudaFreeHost(views), cudaFreeHost(made);
  cudaFree(memory), cudaFree(own), cudaFree(rings);
  return times;
}

void print(const char* key, const Interval& interval, const char* end = ", ") {
  std::printf("\"%s\": {\"median\": %.2f, \"low\": %.2f, \"high\": %.2f}%s", key, interval.median, interval.low,
              interval.high, end);
}

}  // namespace

int main() {
  cudaDeviceProp gpu{};
  CHECK(cudaGetDeviceProperties(&gpu, 0));
  const auto sms = static_cast<std::uint32_t>(gpu.multiProcessorCount);
  const std::uint32_t all = 2 * sms;
  const std::vector<Case> cases = {
      {"1 lane", 1, 1, 1448, false, 0, 0},
      {"2 lanes", 2, 2, 1448, false, 0, 0},
      {"4 lanes", 4, 2, 1448, false, 0, 0},
      {"2 lanes a multiprocessor", all, 1, 1448, false, 0, 0},
      {"the same again", all, 1, 1448, false, 0, 0},
      {"with 4 connections a lane", all, 4, 1448, false, 0, 0},
      {"with 16 connections a lane", all, 16, 1448, false, 0, 0},
      {"0.1 % lost, 1 % reordered", all, 4, 1448, false, 1, 10},
      {"segments of 8944 bytes", all, 1, 8944, false, 0, 0},
      {"segments of 16 bytes", all, 1, 16, false, 0, 0},
      {"pinned, 1 lane", 1, 1, 1448, true, 0, 0},
      {"pinned, 32 lanes", 32, 1, 1448, true, 0, 0},
      {"pinned, 132 lanes", 132, 1, 1448, true, 0, 0},
      {"1 lane, 1024 connections", 1, 1024, 1448, false, 0, 0},
  };
  bool failed = false;
  std::printf(
      "{\"schema_version\": 1, \"gpu\": \"%s\", \"multiprocessors\": %u, \"burst\": %u, \"bursts\": %u, \"samples\": "
      "%d, \"cases\": [",
      gpu.name, sms, kBurst, kBursts, kSamples);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& what = cases[i];
    Run run(what);
    std::vector<double> lanes, threads, copies, calls;
    for (int sample = -1; sample < kSamples; ++sample) {
      const double by_lanes = run.lanes();
      const double by_threads = i == 3 ? run.threads() : 0;
      const double by_copy = run.plain_copy();
      failed = failed || by_lanes < 0 || by_threads < 0;
      if (sample < 0) continue;
      lanes.push_back(by_lanes);
      if (i == 3) threads.push_back(by_threads);
      copies.push_back(by_copy);
      if (i == 3 || i == 11) calls.push_back(run.calls());
    }
    std::printf("%s{\"name\": \"%s\", \"lanes\": %u, \"connections\": %u, \"mss\": %u, \"pinned\": %s, ",
                i == 0 ? "" : ", ", what.name.c_str(), what.lanes, what.lanes * what.connections, what.mss,
                what.pinned ? "true" : "false");
    print("lanes_gbps", of(lanes));
    if (!threads.empty()) print("thread_a_packet_gbps", of(threads));
    if (!calls.empty()) print("copy_call_a_packet_gbps", of(calls));
    print("plain_copy_gbps", of(copies));
    std::printf("\"mpps\": %.1f}", of(lanes).median / what.mss / 8 * 1e3);
    std::fflush(stdout);
  }
  std::printf("], \"ready_to_record_us\": [");
  for (const bool pinned : {true, false}) {
    for (const std::uint32_t frames : {1U, 32U, 256U}) {
      const std::vector<double> times = latencies(frames, pinned);
      const auto at = [&](double part) {
        return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
      };
      std::printf("%s{\"frames\": %u, \"memory\": \"%s\", \"p50\": %.2f, \"p90\": %.2f, \"p99\": %.2f, \"p999\": %.2f}",
                  pinned && frames == 1 ? "" : ", ", frames, pinned ? "pinned" : "device", at(0.5), at(0.9), at(0.99),
                  at(0.999));
    }
  }
  std::printf("]}\n");
  return failed ? 4 : 0;
}
