// SPDX-License-Identifier: Apache-2.0
// Peers that begin long messages and do not go on with them.
#include <gtest/gtest.h>

#include <optional>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kLong = 1 << 20;
/// The fragment of a session's packet; nothing if it has none.
std::optional<packet::MessageFragment> fragment_of(const std::vector<std::uint8_t>& bytes) {
  packet::MessageHeader header;
  packet::MessageFragment fragment;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const bool has = packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::session &&
                   packet::parse(bytes.data(), length, header) == packet::MessageParse::ok &&
                   header.has(packet::kMessageHasFragment) &&
                   packet::parse(bytes.data() + header.length() - packet::MessageFragment::kLength,
                                 header.payload_length, fragment) == packet::MessageParse::ok;
  return has ? std::optional(fragment) : std::nullopt;
}

EndpointConfig patient_for(Nanos message_timeout) {
  EndpointConfig config = small();
  config.message_timeout = message_timeout;
  config.bundles = false;
  return config;
}

Submitted send(Two& two, std::uint32_t length) {
  return two.client.endpoint.send(two.session, {two.payload.data(), length, false}, {}, two.net.now);
}

TEST(Share, of_memory_is_left_for_others_by_one_who_begins_messages_and_sends_no_more) {
  Loopback net(1);
  EndpointConfig config = small();
  config.receive_bytes = 4 * kLong;
  Loopback::Host& server = net.add(config);
  Loopback::Host& hostile = net.add(small());
  Loopback::Host& honest = net.add(small());
  const auto bytes = pattern(kLong, 1);
  const ConstBuffer message{bytes.data(), kLong, false};
  const SessionId sessions[] = {net.connect(hostile, server).first, net.connect(hostile, server).first};
  const SessionId session = net.connect(honest, server).first;
  net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
    const auto fragment = fragment_of(packet);
    return &from == &hostile && fragment && fragment->offset != 0;
  };
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(hostile.endpoint.send(sessions[i % 2], message, {}, net.now).status, CallStatus::ok);
  }
  net.run_for(Nanos{50 * kMs});
  EXPECT_GE(server.endpoint.facts().free_receive_bytes, 3 * kLong);
  EXPECT_GE(server.endpoint.counters().dropped(MessageDrop::over_share), 3U);
  EXPECT_EQ(server.endpoint.counters().over_bytes_per_address.get(),
            server.endpoint.counters().dropped(MessageDrop::over_share));
  ASSERT_EQ(honest.endpoint.send(session, message, {}, net.now).status, CallStatus::ok);
  EXPECT_TRUE(net.run([&] { return Two::count(server, EventKind::message) == 1; }, Nanos{100 * kMs}));
}

TEST(Share, of_memory_is_no_more_than_its_quota_and_passes_all_messages_in_turn) {
  for (const bool of_prefix : {false, true}) {
    SCOPED_TRACE(of_prefix ? "prefix" : "address");
    Loopback net(1);
    EndpointConfig config = small();
    (of_prefix ? config.quotas.bytes_per_prefix : config.quotas.bytes_per_address) = kLong / 2;
    Loopback::Host& server = net.add(config);
    Loopback::Host& hostile = net.add(small());
    const auto bytes = pattern(kLong, 1);
    const SessionId session = net.connect(hostile, server).first;
    int arrived = 0;
    server.handle = [&](const MessageEvent& event) {
      if (event.kind != EventKind::message) return false;
      ++arrived;
      return server.endpoint.release(event.id, net.now) == CallStatus::ok;
    };
    bool silent = true;  // of each message it sends the first packet alone
    net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
      const auto fragment = fragment_of(packet);
      return silent && &from == &hostile && fragment && fragment->offset != 0;
    };
    for (const std::uint32_t length : {kLong, kLong / 4, kLong / 4, kLong}) {
      ASSERT_EQ(hostile.endpoint.send(session, {bytes.data(), length, false}, {}, net.now).status, CallStatus::ok);
    }
    net.run_for(Nanos{50 * kMs});
    EXPECT_GE(server.endpoint.facts().free_receive_bytes, 7 * kLong);
    const EndpointCounters& counters = server.endpoint.counters();
    const Counter& over = of_prefix ? counters.over_bytes_per_prefix : counters.over_bytes_per_address;
    EXPECT_GE(over.get(), 3U);
    EXPECT_EQ(over.get(), counters.dropped(MessageDrop::over_share));
    silent = false;
    EXPECT_TRUE(net.run([&] { return arrived == 4; }));
  }
}

TEST(Stalled, message_is_given_up_and_its_sender_told) {
  Two two(small(), patient_for(Nanos{200 * kMs}));
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
    const auto fragment = fragment_of(packet);
    return &from == &two.client && fragment && fragment->offset != 0;
  };
  ASSERT_EQ(send(two, kLong).status, CallStatus::ok);
  two.net.run_for(Nanos{150 * kMs});
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 7U << 20);
  two.net.run_for(Nanos{100 * kMs});
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 8U << 20);
  EXPECT_EQ(two.server.endpoint.counters().messages_stalled.get(), 1U);
  ASSERT_TRUE(two.until(two.client, EventKind::sent));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::refused);
  EXPECT_EQ(two.client.events[0].code, static_cast<std::uint16_t>(RefusalCode::stalled));
  two.net.tap = nullptr;
  ASSERT_EQ(send(two, kLong).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::message)) << "the session goes on";
}

TEST(Stalled, is_not_what_goes_on_however_slowly) {
  Two two(small(), patient_for(Nanos{100 * kMs}));
  Nanos last = two.net.now;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
    const auto fragment = fragment_of(packet);
    if (&from != &two.client || !fragment || two.net.now.value - last.value > 60 * kMs) {
      if (fragment) last = two.net.now;
      return false;
    }
    return true;
  };
  ASSERT_EQ(send(two, 20'000).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::message));
  EXPECT_GT(two.net.now.value, 800 * kMs);
  EXPECT_EQ(two.server.endpoint.counters().messages_stalled.get(), 0U);
}

TEST(Stalled, is_nobody_whom_this_end_keeps_from_sending) {
  EndpointConfig config = patient_for(Nanos{100 * kMs});
  config.receive_window = 16'384;
  Two two(small(), config);
  ASSERT_EQ(send(two, kLong).status, CallStatus::ok);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(send(two, 1000).status, CallStatus::ok);
  two.net.run_for(Nanos{2'000 * kMs});
  EXPECT_LT(two.server.endpoint.facts().free_receive_bytes, 7U << 20) << "the long one has begun";
  EXPECT_EQ(two.server.endpoint.counters().messages_stalled.get(), 0U);
  std::uint32_t bytes = 0;
  const auto take = [&](const MessageEvent& event) {
    bytes += event.length;
    return two.server.endpoint.release(event.id, two.net.now) == CallStatus::ok;
  };
  two.server.handle = take;
  for (const MessageEvent& event : two.server.events) EXPECT_TRUE(take(event));
  EXPECT_TRUE(two.net.run([&] { return bytes == kLong + 20 * 1000; }));
}

TEST(Stalled, ordered_session_ends_when_what_is_next_never_begins) {
  Two two(small(), patient_for(Nanos{200 * kMs}), {.ordered = true});
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
    const auto fragment = fragment_of(packet);
    return &from == &two.client && fragment && fragment->order == 0;
  };
  for (const std::uint32_t length : {1000U, 1000U, 500'000U}) ASSERT_EQ(send(two, length).status, CallStatus::ok);
  two.net.run_for(Nanos{150 * kMs});
  EXPECT_LT(two.server.endpoint.facts().free_receive_bytes, 8U << 20);
  EXPECT_TRUE(two.server.events.empty());
  ASSERT_TRUE(two.net.run([&] { return Two::count(two.server, EventKind::lost) == 1; }, Nanos{200 * kMs}));
  EXPECT_EQ(Two::first(two.server, EventKind::lost).reason, LossReason::stalled);
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 8U << 20);
}

}  // namespace
}  // namespace warpline::message
