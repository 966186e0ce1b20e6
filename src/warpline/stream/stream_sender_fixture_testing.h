// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "warpline/stream/stream_sender_testing.h"

namespace warpline::stream::testing {

inline const SocketAddress kPeer{Ipv4Address{{10, 0, 0, 1}}, kPort};
inline const PatternSource kSource;

/// The ends of a sender's first connection, and where their numbers begin.
struct SenderEnds {
  const char* name = "Ipv4";
  const char* address = "10.0.0.2";
  const char* peer = "10.0.0.1";
  std::uint32_t initial = 1;
  std::uint32_t peers_initial = 7000;
};
/// Numbers pass 2^31 and 2^32 within the first bytes.
inline constexpr SenderEnds kSenderEnds[] = {
    {},
    {"Ipv4PastTheMiddle", "192.0.2.2", "198.51.100.1", 0x7fff'ff00, 0x7fff'fffe},
    {"Ipv6", "fd00::2", "2001:db8::7", 0x8000'0000, 0x8000'0000},
    {"Ipv6PastTheLast", "2001:db8::2", "fd00::7", 0xffff'fe00, 0xffff'ffff},
};

/// A sender, its time, and the peer of its first connection.
class SenderFixture : public ::testing::Test {
 protected:
  explicit SenderFixture(const SenderEnds& ends = {})
      : ends_(ends),
        now_(time_of(ends)),
        sender_(std::move(StreamSender::create(settings_of(ends), kSource, now_)).value()),
        peer_(another_peer(ends.peers_initial)) {}

  /// Segments have as many bytes over IPv6 as over IPv4.
  static SenderSettings settings_of(const SenderEnds& ends) {
    SenderSettings settings = testing::sender_settings();
    settings.address = *parse_ip(ends.address);
    if (std::holds_alternative<Ipv6Address>(settings.address)) settings.mtu = 1520;
    return settings;
  }
  /// Returns when the first connection has that initial number: it follows the clock by 4 us (RFC 9293, 3.4.1).
  static Nanos time_of(const SenderEnds& ends) {
    constexpr std::int64_t kTick = 4000;
    constexpr Nanos kStart{1000 * kTick};
    StreamSender probe = std::move(StreamSender::create(settings_of(ends), kSource, kStart)).value();
    static_cast<void>(probe.connect({*parse_ip(ends.peer), kPort}, kOurMac, kStart));
    const std::uint32_t at_start = frames_of(probe, kStart).at(0).tcp().sequence;
    return Nanos{kStart.value + std::int64_t{ends.initial - at_start} * kTick};
  }

  [[nodiscard]] SenderSettings sender_settings() const { return settings_of(ends_); }
  [[nodiscard]] bool is_ipv4() const { return std::holds_alternative<Ipv4Address>(sender_settings().address); }
  [[nodiscard]] SocketAddress peer_address() const { return {*parse_ip(ends_.peer), kPort}; }
  [[nodiscard]] PeerOfSender another_peer(std::uint32_t initial = 7000) {
    return PeerOfSender(sender_, initial, peer_address().address, sender_settings().address);
  }
  void use(const SenderSettings& settings) {
    sender_ = std::move(StreamSender::create(settings, kSource, now_)).value();
  }
  ConnectionId connect() {
    const auto id = sender_.connect(peer_address(), kOurMac, now_);
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

  SenderEnds ends_;
  Nanos now_;
  StreamSender sender_;
  PeerOfSender peer_;
};

/// By kSenderEnds.
class SenderTest : public SenderFixture, public ::testing::WithParamInterface<SenderEnds> {
 protected:
  SenderTest() : SenderFixture(GetParam()) {}
};

}  // namespace warpline::stream::testing
