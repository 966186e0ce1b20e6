// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/stream/stream_sender_testing.h"

namespace warpline::stream::testing {

inline const SocketAddress kPeer{Ipv4Address{{10, 0, 0, 1}}, kPort};
inline const PatternSource kSource;

/// A sender of sender_settings(), its time, and the peer of a connection of it.
class SenderTest : public ::testing::Test {
 protected:
  void use(const SenderSettings& settings) {
    sender_ = std::move(StreamSender::create(settings, kSource, now_)).value();
  }
  ConnectionId connect() {
    const auto id = sender_.connect(kPeer, kOurMac, now_);
    EXPECT_TRUE(id);
    return id.value_or(ConnectionId{});
  }
  /// Opens a connection; its first acknowledgement is taken.
  ConnectionId open() {
    const ConnectionId id = connect();
    const std::vector<SentFrame> syn = frames_of(sender_, now_);
    EXPECT_EQ(syn.size(), 1U);
    peer_.take_syn(syn.at(0));
    now_.value += 1'000'000;
    peer_.answer_syn(now_);
    EXPECT_EQ(frames_of(sender_, now_).size(), 1U);
    EXPECT_EQ(last_state(), SendState::open);
    return id;
  }
  std::optional<SendState> last_state() {
    std::optional<SendState> state;
    while (const auto event = sender_.poll()) state = event->state;
    return state;
  }
  std::vector<SentFrame> frames() { return frames_of(sender_, now_); }
  /// Lets time pass, and has done what is due.
  void wait(Nanos span) {
    const Nanos end{now_.value + span.value};
    while (sender_.next_deadline() <= end) {
      now_ = std::max(now_, sender_.next_deadline());
      sender_.advance(now_);
      if (sender_.next_deadline() <= now_) now_.value += 1000;
    }
    now_ = end;
  }
  [[nodiscard]] std::uint64_t offset_of(const SentFrame& frame) const { return frame.tcp().sequence - peer_.number(0); }
  [[nodiscard]] std::vector<std::uint64_t> offsets(const std::vector<SentFrame>& frames) const {
    std::vector<std::uint64_t> found;
    for (const SentFrame& frame : frames) {
      if (!frame.payload.empty()) found.push_back(offset_of(frame));
    }
    return found;
  }

  Nanos now_ = milliseconds(1);
  StreamSender sender_ = std::move(StreamSender::create(sender_settings(), kSource, now_)).value();
  PeerOfSender peer_{sender_};
};

}  // namespace warpline::stream::testing
