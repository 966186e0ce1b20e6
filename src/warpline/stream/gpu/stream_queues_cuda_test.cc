// SPDX-License-Identifier: Apache-2.0
// A GPU that takes frames out of packet queues, against the host. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "warpline/gpu/gpu_testing.cuh"
#include "warpline/queues/packet_queues.h"
#include "warpline/stream/gpu/lane_testing.h"
#include "warpline/stream/gpu/stream_lanes.h"

namespace warpline::stream::testing {
namespace {

using gpu::testing::managed;
using gpu::testing::no_gpu;
using gpu::testing::pinned;

constexpr std::uint32_t kQueueSlots = 512;

/// What became of a batch of frames.
struct BatchEnd {
  std::vector<std::uint16_t> outcomes;                      ///< of each frame, in their order
  std::map<std::size_t, std::vector<std::uint8_t>> posted;  ///< acknowledgements, by the frame that they lie over
  std::uint64_t bytes = 0;
  std::map<std::uint32_t, ConnectionRecord> records;  ///< by connection: the last
};

/// A lane with queues and their proxy, whose frames lie in memory of its own.
class QueuedLane {
 public:
  QueuedLane(const LaneShape& shape, const LaneMemorySource& shared, const LaneMemorySource& own)
      : lane_(shape, shared, own),
        queues_(std::move(queues::PacketQueues::create({.slots = kQueueSlots})).value()),
        frames_(shared(kQueueSlots * kRoom)),
        view_(lane_.view()) {
    view_.queues = queues_->view();
    view_.taken->value = round_;
  }

  [[nodiscard]] const LaneView& view() const { return view_; }
  [[nodiscard]] const TestLane& lane() const { return lane_; }
  [[nodiscard]] std::span<std::byte> region() const { return queues_->region(); }

  /// Orders what the slot has, and posts its frames, each with room for an acknowledgement but for every seventh.
  void post(std::uint64_t order, const BurstSlot& slot, std::uint32_t count) {
    store_release(&view_.now->value, static_cast<std::uint64_t>(slot.order->now.value));
    std::size_t frame = 0;
    for (std::uint32_t i = 0; i < count; i += slot.segments[i].more + 1U, ++frame) {
      Segment pieces[kMaxSegments];
      auto* at = reinterpret_cast<std::uint8_t*>(frames_.get()) + frame * kRoom + frame % 16;
      const std::uint16_t more = slot.segments[i].more;
      for (std::uint16_t k = 0; k <= more; ++k) {
        const Segment& piece = slot.segments[i + k];
        std::memcpy(at, piece.data, piece.length);
        pieces[k] = {at, piece.length, 0, Verdict::forward};
        at += k == 0 ? std::max(piece.length, kLongestReply) : piece.length;
      }
      const bool right = (slot.checksums_right[i / 32] >> i % 32 & 1) != 0;
      const unsigned marks = (right ? kRightMark : 0U) | (frame % 7 != 0 ? kRoomMark : 0U);
      queues_->post(pieces[0].data, std::span(pieces).first(more + 1U), Verdict::forward,
                    static_cast<std::uint8_t>(marks));
    }
    store_release(&view_.ready[order & (view_.shape.slots - 1)].value, order << 32);
    queues_->publish(1);
  }

  /// Takes in what there is of a batch, until all of it is there.
  void take_in(BatchEnd& end, LaneTraffic* learns) {
    for (; load_acquire(&view_.done[round_ & (view_.shape.slots - 1)].value) == round_ << 32; ++round_) {
      const BurstSlot slot = lane_.slot(round_);
      end.bytes += slot.result->bytes;
      for (std::uint32_t i = 0; i < slot.result->records; ++i) {
        end.records[slot.records[i].connection] = slot.records[i];
      }
      if (learns != nullptr) learns->learn(slot);
      store_release(&view_.taken->value, round_ + 1);
    }
    void* tokens[64];
    std::uint32_t lengths[64];
    const std::uint32_t sent = queues_->take_sent(tokens, 64, lengths);
    for (std::uint32_t i = 0; i < sent; ++i) {
      const auto* const bytes = static_cast<const std::uint8_t*>(tokens[i]);
      const auto offset = static_cast<std::size_t>(bytes - reinterpret_cast<const std::uint8_t*>(frames_.get()));
      EXPECT_TRUE(end.posted.emplace(offset / kRoom, std::vector(bytes, bytes + lengths[i])).second) << "twice";
    }
    if (sent != 0) queues_->complete();
    queues_->take_released(kQueueSlots,
                           [&](const queues::PacketQueues::Released& frame) { end.outcomes.push_back(frame.worked); });
  }
  [[nodiscard]] bool is_empty() const { return queues_->in_flight() == 0; }

 private:
  static constexpr std::size_t kRoom = 2048;  ///< for a frame

  TestLane lane_;
  std::unique_ptr<queues::PacketQueues> queues_;
  std::shared_ptr<std::byte> frames_;
  LaneView view_;
  std::uint64_t round_ = 1;
};

void expect_same_end(const BatchEnd& a, const BatchEnd& b) {
  ASSERT_EQ(a.outcomes, b.outcomes);
  ASSERT_EQ(a.posted, b.posted);
  ASSERT_EQ(a.bytes, b.bytes);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (auto x = a.records.begin(), y = b.records.begin(); x != a.records.end(); ++x, ++y) {
    ASSERT_EQ(x->first, y->first);
    ASSERT_EQ(x->second.generation, y->second.generation);
    ASSERT_EQ(x->second.notes.heard, y->second.notes.heard);
    ASSERT_EQ(x->second.notes.challenges, y->second.notes.challenges);
    ASSERT_EQ(x->second.acknowledge, y->second.acknowledge);
    ASSERT_EQ(x->second.written, y->second.written);
    if (x->second.written) {
      ASSERT_EQ(x->second.reply.announced, y->second.reply.announced);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same_states(x->second.state, y->second.state));
  }
}

/// The kernel of a lane, which stays until it is told to end.
class StayingKernel {
 public:
  explicit StayingKernel(const QueuedLane& lane)
      : stop_(lane.view().stop),
        view_(pinned(sizeof(LaneView))),
        kernel_(lane.region(), stream_queues_kernel(), kLaneThreads, write_view(lane.view())) {}
  ~StayingKernel() { end(); }
  void end() const {
    store_release(&stop_->value, 1);
    kernel_.wait();
  }
  [[nodiscard]] bool runs() const { return kernel_.runs(); }

 private:
  [[nodiscard]] const LaneView* write_view(const LaneView& view) const {
    std::memcpy(view_.get(), &view, sizeof(LaneView));
    return reinterpret_cast<const LaneView*>(view_.get());
  }

  LaneWord* stop_;
  std::shared_ptr<std::byte> view_;
  gpu::testing::RunningKernel kernel_;
};

std::uint64_t expect_queues_as_host(const LaneShape& shape, std::uint64_t seed, const LaneFaults& faults,
                                    std::uint32_t longest, std::uint64_t batches) {
  QueuedLane on_gpu(shape, pinned, managed);
  QueuedLane on_host(shape, zeroed, zeroed);
  LaneTraffic traffic(shape, seed, faults, longest, zeroed);
  HostLane host(on_host.view());
  StayingKernel kernel(on_gpu);
  std::uint64_t posted = 0;
  for (std::uint64_t order = 1; order <= batches; ++order) {
    SCOPED_TRACE(order);
    const BurstSlot slot = on_gpu.lane().slot(order);
    const std::uint32_t count = traffic.fill(slot, on_host.lane().slot(order));
    on_gpu.post(order, slot, count);
    on_host.post(order, on_host.lane().slot(order), count);
    BatchEnd by_host;
    while (host.take_round() || !on_host.is_empty()) on_host.take_in(by_host, nullptr);
    on_host.take_in(by_host, nullptr);
    BatchEnd by_gpu;
    while (!on_gpu.is_empty() && kernel.runs()) on_gpu.take_in(by_gpu, &traffic);
    on_gpu.take_in(by_gpu, &traffic);
    expect_same_end(by_gpu, by_host);
    if (::testing::Test::HasFatalFailure()) return 0;
    posted += by_host.posted.size();
  }
  kernel.end();
  for (std::uint32_t i = 0; i < shape.connections; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(on_gpu.view().board.places[i].reach, on_host.view().board.places[i].reach);
    expect_same_states(on_gpu.view().connections[i].state, on_host.view().connections[i].state);
  }
  EXPECT_EQ(std::memcmp(on_gpu.lane().rings().data(), on_host.lane().rings().data(), on_host.lane().rings_bytes()), 0);
  return posted;
}

TEST(StreamQueues, DoAsTheHostDoes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  std::uint64_t posted = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const LaneFaults faults = random_faults(random);
    const LaneShape shape{.connections = 1 + static_cast<std::uint32_t>(random.below(seed % 2 == 0 ? 3 : 100)),
                          .burst = static_cast<std::uint32_t>(48 + random.below(465)),
                          .slots = 16,
                          .changes = 100,
                          .ring_bytes = 1U << (10 + random.below(7)),
                          .queue_slots = kQueueSlots};
    posted += expect_queues_as_host(shape, seed, faults, static_cast<std::uint32_t>(1 + random.below(1448)), 40);
    if (HasFailure()) return;
  }
  EXPECT_GT(posted, 1000U);
}

}  // namespace
}  // namespace warpline::stream::testing
