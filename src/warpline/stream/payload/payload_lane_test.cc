// SPDX-License-Identifier: Apache-2.0
// What a lane puts into frames against what the sender's thread does.
#include "warpline/stream/payload/payload_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/stream/payload/host_payload.h"
#include "warpline/stream/payload/thread_payload_lane.h"
#include "warpline/stream/stream_sender_testing.h"

namespace warpline::stream {
namespace {

constexpr std::uint64_t kPayloadSeed = 5;

/// The bytes of streams that connections number.
class NumberedStreams final : public PayloadSource {
 public:
  explicit NumberedStreams(const SeededPayload& payload) : payload_(payload) {}
  void read(ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    payload_.copy(connection.index, offset, length, to, sum);
  }

 private:
  const SeededPayload& payload_;
};

void carry_out(PayloadLane& lane, std::span<const MakeOrder> makes, std::span<const FillOrder> fills) {
  const std::uint64_t before = lane.landed();
  ASSERT_TRUE(lane.submit(makes, fills));
  while (lane.landed() == before) std::this_thread::yield();
}

TEST(FillPayload, HasTheChecksumOfAnyBytesAnywhere) {
  Random random(4);
  std::array<std::uint8_t, 4096> from;
  for (std::uint8_t& byte : from) byte = static_cast<std::uint8_t>(random.next());
  for (int i = 0; i < 5000; ++i) {
    std::array<std::uint8_t, 4096> frame{};
    alignas(2) std::array<std::uint8_t, 2> checksum{};
    const std::size_t skip = random.below(64);
    const std::size_t at = random.below(64);
    const auto length = static_cast<std::uint32_t>(1 + random.below(i % 2 == 0 ? 64 : 3900));
    std::array<std::uint8_t, 20> rest;
    for (std::uint8_t& byte : rest) byte = static_cast<std::uint8_t>(random.next());
    packet::ChecksumSum sum;
    sum.add(rest.data(), rest.size());
    packet::store_be16(checksum.data(), sum.checksum());
    std::uint16_t stored = 0;
    std::memcpy(&stored, checksum.data(), 2);
    fill_payload({frame.data() + at, from.data() + skip, checksum.data(), length, static_cast<std::uint16_t>(~stored)});
    sum.add(from.data() + skip, length);
    ASSERT_EQ(packet::load_be16(checksum.data()), sum.checksum()) << length;
    ASSERT_EQ(std::memcmp(frame.data() + at, from.data() + skip, length), 0);
    ASSERT_EQ(frame[at + length], 0);
    ASSERT_TRUE(at == 0 || frame[at - 1] == 0);
  }
}

TEST(ThreadPayloadLane, CarriesOrdersOutOneAfterTheOther) {
  constexpr std::uint64_t kRing = 4096;
  const SeededPayload payload(kPayloadSeed);
  // The lane, which may be at its last orders then, ends before what they write to.
  alignas(16) std::array<std::uint8_t, 64 * PayloadLane::kSlots> frames{};
  std::array<std::uint8_t, 2 * PayloadLane::kSlots> checksums{};
  auto lane = *make_thread_payload_lane({.connections = 2, .ring_bytes = kRing}, payload, {.yield = true});
  // Each batch makes what overwrites the bytes that the one before it copies.
  std::uint64_t submitted = 0;
  while (submitted < 500) {
    const std::uint64_t slot = submitted % PayloadLane::kSlots;
    const MakeOrder make{lane->ring(1), 9, submitted * kRing, kRing};
    const FillOrder fill{frames.data() + 64 * slot, lane->ring(1) + 1001, checksums.data() + 2 * slot, 63, 0};
    if (!lane->submit({&make, 1}, {&fill, 1})) {
      ASSERT_GE(submitted, PayloadLane::kSlots);
      while (submitted - lane->landed() == PayloadLane::kSlots) std::this_thread::yield();
      continue;
    }
    const std::uint64_t number = ++submitted;
    if (number % 3 != 0) continue;
    while (lane->landed() != number) std::this_thread::yield();
    for (std::uint64_t back = 0; back < std::min<std::uint64_t>(number, 3); ++back) {
      const std::uint64_t earlier = number - 1 - back;
      const std::span<const std::uint8_t> found{frames.data() + 64 * (earlier % PayloadLane::kSlots), 63};
      ASSERT_EQ(payload.matching(9, earlier * kRing + 1001, found), 63U) << earlier;
    }
  }
}

/// Two senders that hear the same, of which one reads its payload and the other has it put in.
class UnfilledFrames : public ::testing::TestWithParam<std::uint16_t> {
 protected:
  static constexpr std::uint64_t kRing = 128 << 10;

  static SenderSettings settings() {
    SenderSettings settings = testing::sender_settings();
    settings.connections = 1;
    settings.window_bytes = kRing / 2;
    return settings;
  }

  /// Returns the next frame of each; nothing of both if there is none.
  std::pair<std::vector<std::uint8_t>, std::vector<std::uint8_t>> next() {
    std::vector<std::uint8_t> read(reading_.frame_bytes());
    std::vector<std::uint8_t> filled(reading_.frame_bytes());
    read.resize(reading_.next_frame(read, now_));
    const UnfilledFrame unfilled = filling_.next_unfilled(filled, now_);
    filled.resize(unfilled.length);
    if (unfilled.payload == 0) return {read, filled};
    ++filled_;
    std::uint8_t* const checksum = filled.data() + unfilled.checksum;
    std::uint16_t stored = 0;
    std::memcpy(&stored, checksum, 2);
    const FillOrder order{filled.data() + unfilled.length - unfilled.payload,
                          lane_->ring(unfilled.connection.index) + unfilled.offset % kRing, checksum, unfilled.payload,
                          static_cast<std::uint16_t>(~stored)};
    carry_out(*lane_, {}, {&order, 1});
    return {read, filled};
  }

  Nanos now_{1'000'000'000};
  SeededPayload payload_{kPayloadSeed};
  NumberedStreams source_{payload_};
  StreamSender reading_ = std::move(StreamSender::create(settings(), source_, now_)).value();
  StreamSender filling_ = std::move(StreamSender::create(settings(), source_, now_)).value();
  std::unique_ptr<PayloadLane> lane_ =
      *make_thread_payload_lane({.connections = 1, .ring_bytes = kRing}, payload_, {.yield = true});
  std::uint64_t filled_ = 0;
};

TEST_P(UnfilledFrames, AreTheSameWhenTheyAreFilled) {
  constexpr std::uint64_t kBytes = 1'000'003;  // around the ring, many times
  const SocketAddress peer{Ipv4Address{{10, 0, 0, 1}}, testing::kPort};
  const ConnectionId id = *reading_.connect(peer, testing::kOurMac, now_);
  ASSERT_EQ(*filling_.connect(peer, testing::kOurMac, now_), id);
  testing::PeerOfSender first(reading_), second(filling_);
  for (testing::PeerOfSender* one : {&first, &second}) one->mss = GetParam();
  auto syn = next();
  ASSERT_EQ(syn.first, syn.second);
  for (testing::PeerOfSender* one : {&first, &second}) {
    const auto reply = testing::read_reply(syn.first);
    ASSERT_TRUE(reply);
    one->take_syn(testing::SentFrame{*reply, {}});
    one->answer_syn(now_);
  }
  Random random(GetParam());
  std::uint64_t offered = 0;
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
  while (acknowledged != kBytes) {
    const std::uint64_t target = std::min(acknowledged + kRing, kBytes);
    if (target != offered) {
      const std::uint64_t more = 1 + random.below(target - offered);
      const MakeOrder make{lane_->ring(0) + offered % kRing, 0, offered, more};
      carry_out(*lane_, {&make, 1}, {});
      ASSERT_TRUE(reading_.offer(id, more) && filling_.offer(id, more));
      offered += more;
    }
    for (std::uint64_t turns = random.below(40); turns != 0; --turns) {
      const auto [read, filled] = next();
      ASSERT_EQ(read, filled);
      if (read.empty()) break;
    }
    sent = reading_.view(id)->sent;
    now_.value += static_cast<std::int64_t>(random.below(random.below(8) == 0 ? 400'000'000 : 1'000'000));
    for (StreamSender* one : {&reading_, &filling_}) one->advance(now_);
    // Somewhere there is a loss: what lies behind it has arrived.
    if (sent == acknowledged) continue;
    const std::uint64_t in_order =
        random.below(3) == 0 ? acknowledged : acknowledged + random.below(sent - acknowledged + 1);
    testing::PeerOfSender::Blocks blocks;
    if (in_order + 2000 < sent) blocks.emplace_back(in_order + 1500, sent);
    acknowledged = in_order;
    for (testing::PeerOfSender* one : {&first, &second}) one->acknowledge(in_order, now_, blocks);
  }
  EXPECT_GT(reading_.counters().retransmitted.get(), 20U);
  EXPECT_EQ(filling_.counters().retransmitted.get(), reading_.counters().retransmitted.get());
  EXPECT_GT(filled_, kBytes / GetParam());
}

INSTANTIATE_TEST_SUITE_P(Segments, UnfilledFrames, ::testing::Values(1460, 1001, 333, 90));

}  // namespace
}  // namespace warpline::stream
