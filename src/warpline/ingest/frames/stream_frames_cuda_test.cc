// SPDX-License-Identifier: Apache-2.0
// Frames in a GPU's memory for work on a stream, against those of the host. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/batches/stream_engine.h"
#include "warpline/ingest/frames/frame_sum.h"
#include "warpline/ingest/frames/gpu_frames_testing.h"
#include "warpline/ingest/frames/stream_frames.h"
#include "warpline/ingest/frames/stream_frames_testing.h"

namespace warpline::ingest {
namespace {

/// Sums all frames in GPU memory, once the gate is open; stops taking frames when told to.
class SummingFrames final : public FrameConsumer {
 public:
  explicit SummingFrames(const flow::FrameDescription& description)
      : plan_(*flow::make_frame_plan(description, flow::PacketForm::ethernet)),
        gate_(*gpu::PinnedBuffer::create(Bytes{64})),
        sum_(*gpu::DeviceBuffer::create(Bytes{64})) {}

  bool consume(const ReadyFrame& ready) override {
    EXPECT_EQ(ready.path, 3U);
    EXPECT_EQ(ready.gpu, 0);
    if (seen == most) return false;
    ++seen;
    return queue_frame_sum(ready, plan_, reinterpret_cast<std::uint64_t*>(gate_.data()),
                           reinterpret_cast<std::uint64_t*>(sum_.data()));
  }
  void open() const {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(gate_.data())).store(1, std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t sum = 0;
    EXPECT_TRUE(gpu::copy_and_wait(&sum, sum_.data(), sizeof(sum)));
    return sum;
  }

  std::atomic<std::uint64_t> seen{0};
  std::uint64_t most = ~std::uint64_t{0};

 private:
  flow::FramePlan plan_;
  gpu::PinnedBuffer gate_;
  gpu::DeviceBuffer sum_;
};

/// The sum of a frame on a GPU that somebody keeps.
std::uint64_t sum_of(const KeptFrame& kept, const flow::FramePlan& plan) {
  std::vector<std::uint64_t> data(kept.bytes() / sizeof(std::uint64_t) + 1);
  std::vector<std::uint8_t> mask(kept.packets());
  EXPECT_TRUE(gpu::copy_and_wait(data.data(), kept.frame().data, kept.bytes()));
  EXPECT_TRUE(gpu::copy_and_wait(mask.data(), kept.frame().mask, mask.size()));
  flow::Frame frame = kept.frame();
  frame.data = reinterpret_cast<std::uint8_t*>(data.data());
  std::uint64_t sum = frame_head_sum(frame);
  for (std::uint32_t slot = 0; slot < mask.size(); ++slot) {
    if (mask[slot] != 0) sum += payload_sum(plan, frame, frame_salt(frame), slot);
  }
  return sum;
}

/// A ring with an engine whose frames are a SummingFrames's, or an inbox's.
class FramePath {
 public:
  FramePath(const flow::FrameDescription& description, SummingFrames& consumer, bool copies, Nanos timeout = {})
      : FramePath(
            copies,
            [&](Bytes memory, StreamFrames::Place place) {
              place.timeout = timeout;
              return *StreamFrames::create(description, memory, place, consumer);
            },
            description) {}
  FramePath(const flow::FrameDescription& description, const std::shared_ptr<FrameInbox>& inbox, bool copies)
      : FramePath(
            copies,
            [&](Bytes memory, const StreamFrames::Place& place) {
              return *StreamFrames::create_kept(description, memory, place, inbox);
            },
            description) {}
  template <typename F>
  FramePath(bool copies, F&& make, const flow::FrameDescription& description) {
    constexpr std::uint16_t kDescriptors = 2 * kFrameBurst;
    ring = *handoff::BurstRing::create({.slots = kFrameSlots, .packets = kFrameBurst, .segments = kDescriptors});
    memory_ = *gpu::PinnedBuffer::create(Bytes{std::uint64_t{kFrameSlots} * kFrameBurst * kFrameStride});
    if (copies) {
      slots_ = *BatchSlots::create(
          {.slots = kFrameSlots, .slot_bytes = std::uint64_t{kFrameBurst} * kFrameStride, .gpu = 0, .pulled = true});
    }
    frames = make(least_memory(description, kDescriptors),
                  StreamFrames::Place{.path = 3, .batch = kDescriptors, .slots = kFrameSlots});
    engine.emplace(*ring, BatchWork{.consumer = nullptr, .assembly = frames.get()},
                   StreamEngineSetup{.path = 3,
                                     .pull = copies ? slots_->pull() : 0,
                                     .watchdog = Nanos{20'000'000'000},
                                     .lane = {std::nullopt, true}});
    EXPECT_TRUE(engine->start().ok());
  }

  void pass(const std::vector<Arrived>& packets, Random& random) {
    pass_packets(*ring, *engine, packets, slots_.get(), memory_->data(), random);
  }

  std::unique_ptr<handoff::BurstRing> ring;
  std::unique_ptr<StreamFrames> frames;
  std::optional<StreamEngine> engine;

 private:
  std::optional<gpu::PinnedBuffer> memory_;
  std::unique_ptr<BatchSlots> slots_;
};

class StreamFramesTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
    ASSERT_TRUE(load_frame_sum());
  }
};

TEST_P(StreamFramesTest, AreTheHostsWhateverTheConsumersPace) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    const std::string text = random_frames(random);
    SCOPED_TRACE(text);
    const flow::FrameDescription description = *flow::parse_frame_description(text);
    const std::vector<Arrived> packets = arrive(description, random);
    SummingFrames consumer(description);
    FramePath path(description, consumer, GetParam());
    // While the gate is closed no frame comes back: memory runs out, batches stop in the middle, and go on when it
    // opens. With the least memory the open frames of all streams leave one for the consumer.
    std::atomic<bool> passed = false;
    std::thread opener([&] {
      while (seed % 2 == 0 && consumer.seen == 0 && !passed && !path.engine->failure()) std::this_thread::yield();
      consumer.open();
    });
    path.pass(packets, random);
    passed = true;
    opener.join();
    EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
    EXPECT_FALSE(path.engine->failure());
    const Result<FrameTotals> there = path.frames->end();
    ASSERT_TRUE(there.ok()) << there.error().message();
    const FrameTotals here = frames_on_host(description, packets);
    EXPECT_EQ(consumer.sum(), here.consumed.sum);
    EXPECT_EQ(consumer.seen, here.counts.complete + here.counts.incomplete);
    EXPECT_EQ(there->consumed.packets, here.consumed.packets);
    EXPECT_EQ(std::memcmp(&there->counts, &here.counts, sizeof(here.counts)), 0);
  }
}

TEST_P(StreamFramesTest, KeepAFrameUntilTheStreamHasPassedIt) {
  const flow::FrameDescription description =
      *flow::parse_frame_description("packets=4,seq=4:64,payload=12:64,window=2");
  std::vector<Arrived> packets;
  for (std::int64_t i = 0; i < 4 * 100; ++i) {
    packets.push_back(
        {.bytes = packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(description, 0, i)))});
  }
  SummingFrames consumer(description);
  FramePath path(description, consumer, GetParam());
  Random random(1);
  std::atomic<bool> passed = false;
  std::thread passing([&] {
    path.pass(packets, random);
    passed = true;
  });
  while (consumer.seen < 3 && !path.engine->failure()) std::this_thread::yield();
  EXPECT_FALSE(passed) << "frames are few, and none has come back";
  EXPECT_LT(consumer.seen, 100U);
  consumer.open();
  passing.join();
  EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
  ASSERT_TRUE(path.frames->end().ok());
  EXPECT_EQ(consumer.seen, 100U);
  EXPECT_EQ(consumer.sum(), frames_on_host(description, packets).consumed.sum);
}

TEST_P(StreamFramesTest, PartialOnesOfASilentSourceAreHandedOver) {
  const flow::FrameDescription description =
      *flow::parse_frame_description("packets=4,seq=4:64,payload=12:64,window=2");
  std::vector<Arrived> packets;
  for (std::int64_t i = 0; i < 3; ++i) {
    packets.push_back(
        {.bytes = packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(description, 0, i)))});
  }
  SummingFrames consumer(description);
  consumer.open();
  FramePath path(description, consumer, GetParam(), Nanos{10'000'000});
  Random random(1);
  path.pass(packets, random);
  while (consumer.seen == 0 && !path.engine->failure()) std::this_thread::yield();
  EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
  const Result<FrameTotals> totals = path.frames->end();
  ASSERT_TRUE(totals.ok()) << totals.error().message();
  EXPECT_EQ(totals->counts.timed_out, 1U);
  EXPECT_EQ(totals->consumed.packets, 3U);
  EXPECT_EQ(consumer.sum(), frames_on_host(description, packets).consumed.sum);
}

TEST_P(StreamFramesTest, EndWithAnErrorWhenTheConsumerDoesNotGoOn) {
  Random random(4);
  const flow::FrameDescription description = *flow::parse_frame_description(random_frames(random));
  SummingFrames consumer(description);
  consumer.open();
  consumer.most = 2;
  FramePath path(description, consumer, GetParam());
  path.pass(arrive(description, random), random);
  ASSERT_TRUE(path.engine->failure());
  EXPECT_EQ(path.engine->failure()->why, "the consumer did not take a frame");
  (void)path.engine->stop(Nanos{5'000'000'000});
  EXPECT_FALSE(gpu::gpus_abandoned());
  EXPECT_EQ(consumer.seen, 2U);
}

TEST_P(StreamFramesTest, KeptOnesAreTheHostsHoweverLongTheyAreKept) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    const std::string text = random_frames(random);
    SCOPED_TRACE(text);
    const flow::FrameDescription description = *flow::parse_frame_description(text);
    const flow::FramePlan plan = *flow::make_frame_plan(description, flow::PacketForm::ethernet);
    const std::vector<Arrived> packets = arrive(description, random);
    const auto inbox = *FrameInbox::make();
    FramePath path(description, inbox, GetParam());
    std::uint64_t sum = 0;
    std::uint64_t seen = 0;
    std::thread consumer([&, pace = Random(seed + 100)]() mutable {
      ASSERT_TRUE(gpu::use_gpu(0).ok());
      std::vector<std::shared_ptr<KeptFrame>> kept;
      for (bool last = false; !last;) {
        last = inbox->ended();
        while (auto frame = inbox->take()) kept.push_back(std::move(frame));
        // Sometimes all that there is; it is looked at when it goes, in any order.
        while (!kept.empty() && (last || inbox->starved() || pace.below(3) == 0)) {
          std::swap(kept[pace.below(kept.size())], kept.back());
          sum += sum_of(*kept.back(), plan);
          kept.pop_back();
          ++seen;
        }
        std::this_thread::yield();
      }
    });
    path.pass(packets, random);
    EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
    EXPECT_FALSE(path.engine->failure());
    const Result<FrameTotals> there = path.frames->end();
    inbox->end();
    consumer.join();
    ASSERT_TRUE(there.ok()) << there.error().message();
    const FrameTotals here = frames_on_host(description, packets);
    EXPECT_EQ(sum, here.consumed.sum);
    EXPECT_EQ(seen, here.counts.complete + here.counts.incomplete);
    EXPECT_EQ(there->consumed.packets, here.consumed.packets);
    EXPECT_EQ(std::memcmp(&there->counts, &here.counts, sizeof(here.counts)), 0);
  }
}

TEST_P(StreamFramesTest, KeptOnesHoldUpNobodyOnceTheInboxIsClosed) {
  Random random(4);
  const flow::FrameDescription description = *flow::parse_frame_description(random_frames(random));
  const std::vector<Arrived> packets = arrive(description, random);
  const auto inbox = *FrameInbox::make();
  FramePath path(description, inbox, GetParam());
  std::vector<std::shared_ptr<KeptFrame>> kept;
  std::thread consumer([&] {
    while (!inbox->starved()) {
      if (auto frame = inbox->take()) kept.push_back(std::move(frame));
    }
    inbox->close();
  });
  path.pass(packets, random);
  consumer.join();
  EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
  EXPECT_FALSE(path.engine->failure());
  EXPECT_TRUE(path.frames->end().ok());
  EXPECT_FALSE(kept.empty());
}

TEST_P(StreamFramesTest, MemoryOfAKeptOneWaitsForTheStreamThatReadsIt) {
  const flow::FrameDescription description =
      *flow::parse_frame_description("packets=4,seq=4:64,payload=12:64,window=2");
  std::vector<Arrived> packets;
  for (std::int64_t i = 0; i < 4 * 100; ++i) {
    packets.push_back(
        {.bytes = packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(description, 0, i)))});
  }
  const auto inbox = *FrameInbox::make();
  FramePath path(description, inbox, GetParam());
  const gpu::CudaStream reader = *gpu::CudaStream::create();
  const auto word = *gpu::PinnedBuffer::create(Bytes{64});
  auto* const gate = reinterpret_cast<std::uint64_t*>(word.data());
  ASSERT_TRUE(gpu::CudaStream::queue_wait(reader.get(), gate, 1));
  Random random(1);
  std::thread passing([&] { path.pass(packets, random); });
  std::uint64_t seen = 0;
  while (!inbox->starved()) {
    if (const auto frame = inbox->take()) {
      frame->used_by(reader.get());  // and gone, while the stream has not come to it
      ++seen;
    }
  }
  EXPECT_LT(seen, 100U);
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(inbox->starved());
  std::atomic_ref(*gate).store(1, std::memory_order_release);
  while (seen < 99) seen += inbox->take() != nullptr;  // the window has the last one
  passing.join();
  EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
  ASSERT_TRUE(path.frames->end().ok());
}

INSTANTIATE_TEST_SUITE_P(, StreamFramesTest, ::testing::Bool(),
                         [](const auto& copies) { return std::string(copies.param ? "copied" : "lent"); });

}  // namespace
}  // namespace warpline::ingest
