// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/stream_receiver.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream::testing {

using LentFrame = std::vector<std::uint8_t>;

inline ReceiverSettings lane_settings() {
  ReceiverSettings settings;
  settings.mac = kOurMac;
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {kPort};
  settings.connections = 4;
  settings.ring_bytes = 64 << 10;
  settings.secret[0] = 1;
  return settings;
}

/// A peer that writes segments of a connection without options.
class LanePeerFrames {
 public:
  explicit LanePeerFrames(std::uint16_t port = 40'000, const Ipv4Address& address = {{10, 0, 0, 2}})
      : port_(port), address_(address) {}

  [[nodiscard]] LentFrame make(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags,
                               std::uint32_t length) const {
    packet::TcpFrame frame;
    frame.destination_mac = kOurMac;
    frame.source_mac = kPeerMac;
    frame.source = address_;
    frame.destination = Ipv4Address{{10, 0, 0, 1}};
    frame.tcp.source_port = port_;
    frame.tcp.destination_port = kPort;
    frame.tcp.sequence = sequence;
    frame.tcp.acknowledgement = acknowledgement;
    frame.tcp.flags = flags;
    const std::uint32_t headers = packet::tcp_headers_length(frame);
    LentFrame bytes(headers + length);
    for (std::uint32_t i = 0; i < length; ++i) bytes[headers + i] = byte_of(port_, sequence - 1 + i);
    packet::ChecksumSum sum;
    sum.add(bytes.data() + headers, length);
    static_cast<void>(packet::emit(frame, bytes, length, sum));
    return bytes;
  }
  /// Returns byte `offset` of the stream of a peer with that port.
  [[nodiscard]] static std::uint8_t byte_of(std::uint16_t port, std::uint64_t offset) {
    return pattern_at(std::uint64_t{port - 40'000U} * 1'000'003 + offset);
  }

 private:
  std::uint16_t port_;
  Ipv4Address address_;
};

/// Frames that are lent to a receiver.
class Lender : public OtherFrames {
 public:
  explicit Lender(StreamReceiver& receiver) : receiver_(receiver) {}

  /// Lends a frame, as soon as there is room for it.
  void give(LentFrame frame) {
    waiting_.push_back(std::move(frame));
    lend();
  }
  /// Hands the lane what it has room for, and takes in what it is done with. True if there was something.
  bool turn(Nanos now) {
    lend();
    receiver_.end_burst(now);
    const bool any = receiver_.collect(this, now);
    std::array<void*, 3> tokens;
    while (const std::uint32_t count = receiver_.take_back(tokens)) {
      for (std::uint32_t i = 0; i < count; ++i) drop(tokens[i]);
    }
    return any;
  }
  /// Waits until nothing is in flight any more.
  void settle(Nanos now) {
    do {
      if (!turn(now)) std::this_thread::yield();
    } while (receiver_.in_flight() != 0 || !waiting_.empty());
  }
  [[nodiscard]] bool take(FrameRef frame, void* token) override {
    if (frame.length != kOdd) return false;
    drop(token);
    ++taken;
    return true;
  }
  /// A frame that the lane has posted was sent.
  void take_posted(void* token) { drop(token); }
  [[nodiscard]] std::size_t lent() const { return lent_.size(); }

  static constexpr std::uint32_t kOdd = 60;  ///< bytes of a frame that is none for the receiver
  int taken = 0;

 private:
  void drop(void* token) {
    const std::size_t before = lent_.size();
    std::erase_if(lent_, [token](const LentFrame& frame) { return &frame == token; });
    EXPECT_EQ(lent_.size() + 1, before);
  }

  void lend() {
    for (; !waiting_.empty() && receiver_.room() != 0; waiting_.pop_front()) {
      LentFrame& bytes = lent_.emplace_back(std::move(waiting_.front()));
      Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
      receiver_.give(frame_at(&segment), false, &bytes);
    }
  }

  StreamReceiver& receiver_;
  std::list<LentFrame> lent_;
  std::list<LentFrame> waiting_;
};

/// A receiver with a lane that works when it is told to, and what is lent to it. By the slots of its queues; 0: it has
/// none.
class StepLanes : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  /// Bursts have up to so many frames, and so many slots.
  void create(const ReceiverSettings& settings, std::uint32_t burst, std::uint32_t slots) {
    auto lane = std::move(StepLane::create(lane_shape(settings, burst, slots, GetParam()))).value();
    lane_ = lane.get();
    receiver_.emplace(std::move(StreamReceiver::create(settings, now_, std::move(lane))).value());
    lender_.emplace(*receiver_);
  }
  void TearDown() override {
    receiver_->stop_lane();
    (void)lender_->turn(now_);
    EXPECT_EQ(lender_->lent(), 0U);
  }

  /// Has the lane take all there is.
  void work() {
    do {
      (void)lender_->turn(now_);
      take_posted();
    } while (lane_->step() || receiver_->in_flight() != 0);
  }
  /// Returns the number that acknowledges the answer to that peer's SYN, if there is one.
  std::optional<std::uint32_t> connect(const LanePeerFrames& peer) {
    lender_->give(peer.make(0, 0, packet::kTcpSyn, 0));
    work();
    const std::vector<Reply> replies = replies_of(*receiver_, now_);
    if (replies.size() != 1 || !replies[0].has(packet::kTcpSyn | packet::kTcpAck)) return std::nullopt;
    return replies[0].tcp().sequence + 1;
  }

  Nanos now_ = milliseconds(1000);
  StepLane* lane_ = nullptr;
  std::optional<StreamReceiver> receiver_;
  std::optional<Lender> lender_;

 private:
  void take_posted() {
    std::array<PostedFrame, 16> posted;
    while (const std::uint32_t count = receiver_->has_queues() ? receiver_->take_posted(posted) : 0) {
      for (std::uint32_t i = 0; i < count; ++i) lender_->take_posted(posted[i].token);
    }
  }
};

}  // namespace warpline::stream::testing
