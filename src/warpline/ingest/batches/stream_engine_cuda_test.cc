// SPDX-License-Identifier: Apache-2.0
// Work on streams for batches, of packets that are lent and packets that are copied. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/batches/stream_engine.h"
#include "warpline/ingest/batches/stream_engine_testing.h"
#include "warpline/ingest/consumers/byte_sum.h"

namespace warpline::ingest {
namespace {

constexpr std::uint16_t kStreamBatch = 24;
constexpr std::uint32_t kStreamSlots = 4;
constexpr std::uint32_t kStreamStride = 512;

/// Sums all packets in GPU memory; stops taking batches when told to.
class SummingBatches final : public GpuBatchConsumer {
 public:
  SummingBatches() : shared_(*gpu::PinnedBuffer::create(Bytes{64})), sum_(*gpu::DeviceBuffer::create(Bytes{64})) {}

  bool consume(const GpuBatch& batch) override {
    EXPECT_EQ(batch.sequence, seen.load() + 1) << "batches of a path come in order";
    EXPECT_EQ(batch.path, 7U);
    if (batch.sequence > most) return false;
    seen.store(batch.sequence);
    return queue_gate_and_sums(batch, reinterpret_cast<std::uint64_t*>(shared_.data()),
                               reinterpret_cast<std::uint64_t*>(sum_.data()));
  }
  void open() const {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(shared_.data())).store(1, std::memory_order_release);
  }
  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t sum = 0;
    EXPECT_TRUE(gpu::copy_and_wait(&sum, sum_.data(), sizeof(sum)));
    return sum;
  }

  std::uint64_t most = ~std::uint64_t{0};
  std::atomic<std::uint64_t> seen{0};

 private:
  gpu::PinnedBuffer shared_;
  gpu::DeviceBuffer sum_;
};

struct Packet {
  std::vector<std::uint8_t> bytes;
  std::uint32_t first = 0;  ///< bytes of the first of two pieces; 0: there is one
};

std::vector<Packet> random_packets(std::size_t count) {
  Random random(5);
  std::vector<Packet> packets(count);
  for (Packet& packet : packets) {
    packet.bytes.resize(1 + random.below(kStreamStride));
    for (std::uint8_t& byte : packet.bytes) byte = static_cast<std::uint8_t>(random.next());
    if (random.below(6) == 0) packet.bytes[0] = kRefusedByte;
    if (random.below(4) == 0) packet.first = static_cast<std::uint32_t>(random.below(packet.bytes.size()));
  }
  return packets;
}

/// A ring with a StreamEngine on one side, the packets of one test on the other.
class StreamPath {
 public:
  StreamPath(SummingBatches& consumer, bool copies) {
    ring = *handoff::BurstRing::create({.slots = kStreamSlots, .packets = kStreamBatch, .segments = 2 * kStreamBatch});
    memory_ = *gpu::PinnedBuffer::create(Bytes{std::uint64_t{kStreamSlots} * kStreamBatch * kStreamStride});
    if (copies) {
      slots_ = *BatchSlots::create(
          {.slots = kStreamSlots, .slot_bytes = std::uint64_t{kStreamBatch} * kStreamStride, .gpu = 0, .pulled = true});
    }
    engine.emplace(*ring, BatchWork{&consumer},
                   StreamEngineSetup{.path = 7, .pull = copies ? slots_->pull() : 0, .lane = {std::nullopt, true}});
    EXPECT_TRUE(engine->start().ok());
  }

  /// Publishes the next batch if a slot is free.
  bool publish(const std::vector<Packet>& packets) {
    handoff::Burst* const burst = published_ < packets.size() ? ring->acquire() : nullptr;
    if (burst == nullptr) return false;
    const std::uint64_t slot = ring->next_slot();
    std::size_t filled = 0;
    while (burst->packet_count() < kStreamBatch && published_ < packets.size()) {
      const Packet& packet = packets[published_++];
      const auto length = static_cast<std::uint32_t>(packet.bytes.size());
      std::byte* const staging = slots_ ? slots_->staging(slot) : memory_->data() + slot * kStreamBatch * kStreamStride;
      auto* const at = reinterpret_cast<std::uint8_t*>((slots_ ? slots_->place(slot) : staging) + filled);
      std::memcpy(staging + filled, packet.bytes.data(), length);
      filled += slot_room(length);
      if (packet.first == 0 || slots_) {
        burst->append(nullptr, at, length);
        continue;
      }
      Segment* const pieces = burst->append(nullptr, 2);
      pieces[0].data = at;
      pieces[0].length = packet.first;
      pieces[1].data = at + packet.first;
      pieces[1].length = length - packet.first;
    }
    ring->publish();
    engine->on_published();
    return true;
  }

  std::unique_ptr<handoff::BurstRing> ring;
  std::optional<StreamEngine> engine;

 private:
  std::optional<gpu::PinnedBuffer> memory_;
  std::unique_ptr<BatchSlots> slots_;
  std::size_t published_ = 0;
};

class StreamEngineTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!gpu::list_gpus()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
    ASSERT_TRUE(load_gate_and_sums());
  }
};

TEST_P(StreamEngineTest, GivesEveryBatchToTheConsumerAndTakesBackItsVerdicts) {
  const std::vector<Packet> packets = random_packets(2000);
  SummingBatches consumer;
  consumer.open();
  std::uint64_t expected = 0;
  std::vector<Verdict> verdicts;
  for (Packet packet : packets) {
    const auto length = static_cast<std::uint32_t>(packet.bytes.size());
    Segment whole{packet.bytes.data(), length, 0, Verdict::forward};
    expected += frame_sum({&whole, 1, length});
    verdicts.push_back(packet.bytes[0] == kRefusedByte ? Verdict::user_drop : Verdict::forward);
  }
  {
    StreamPath path(consumer, GetParam());
    std::vector<Verdict> seen;
    while (seen.size() < packets.size() && !path.engine->failure()) {
      path.publish(packets);
      if (const handoff::Burst* const done = path.ring->completed()) {
        EXPECT_EQ(done->unworked(), 0U);
        done->for_each([&](void*, Verdict verdict) { seen.push_back(verdict); });
        path.ring->release();
      }
    }
    EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
    EXPECT_FALSE(path.engine->failure());
    EXPECT_EQ(path.engine->counters(0).packets.get(), packets.size());
    EXPECT_EQ(seen, verdicts);
  }
  EXPECT_EQ(consumer.sum(), expected);
}

TEST_P(StreamEngineTest, KeepsABatchUntilTheWorkOnItsStreamIsDone) {
  const std::vector<Packet> packets = random_packets(10 * kStreamBatch);
  SummingBatches consumer;
  {
    StreamPath path(consumer, GetParam());
    while (path.publish(packets)) {
    }
    while (consumer.seen.load() < kStreamSlots && !path.engine->failure()) std::this_thread::yield();
    for (int look = 0; look < 1000; ++look) EXPECT_EQ(path.ring->completed(), nullptr);
    EXPECT_FALSE(path.publish(packets)) << "no slot is free";
    consumer.open();
    for (unsigned done = 0; done < kStreamSlots && !path.engine->failure();) {
      if (path.ring->completed() == nullptr) continue;
      path.ring->release();
      ++done;
    }
    EXPECT_TRUE(path.publish(packets));
    EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 0U);
    EXPECT_FALSE(path.engine->failure());
  }
}

TEST_P(StreamEngineTest, EndsWithAnErrorWhenTheConsumerDoesNotGoOn) {
  const std::vector<Packet> packets = random_packets(4 * kStreamBatch);
  SummingBatches consumer;
  consumer.open();
  consumer.most = 2;
  StreamPath path(consumer, GetParam());
  while (path.publish(packets)) {
  }
  while (!path.engine->failure()) std::this_thread::yield();
  EXPECT_EQ(path.engine->failure()->why, "the consumer did not take a batch");
  EXPECT_EQ(path.engine->stop(Nanos{5'000'000'000}).bursts, 2U);
  EXPECT_FALSE(gpu::gpus_abandoned());
}

INSTANTIATE_TEST_SUITE_P(, StreamEngineTest, ::testing::Bool(),
                         [](const auto& copies) { return std::string(copies.param ? "copied" : "lent"); });

}  // namespace
}  // namespace warpline::ingest
