// SPDX-License-Identifier: Apache-2.0
// Peers that take what others need: they begin long messages and do not go on with them, acknowledge nothing, or ask
// more than is handled.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kMegabyte = 1 << 20;
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
  config.receive_bytes = 4 * kMegabyte;
  Loopback::Host& server = net.add(config);
  Loopback::Host& hostile = net.add(small());
  Loopback::Host& honest = net.add(small());
  const auto bytes = pattern(kMegabyte, 1);
  const ConstBuffer message{bytes.data(), kMegabyte, false};
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
  EXPECT_GE(server.endpoint.facts().free_receive_bytes, 3 * kMegabyte);
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
    (of_prefix ? config.quotas.bytes_per_prefix : config.quotas.bytes_per_address) = kMegabyte / 2;
    Loopback::Host& server = net.add(config);
    Loopback::Host& hostile = net.add(small());
    const auto bytes = pattern(kMegabyte, 1);
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
    for (const std::uint32_t length : {kMegabyte, kMegabyte / 4, kMegabyte / 4, kMegabyte}) {
      ASSERT_EQ(hostile.endpoint.send(session, {bytes.data(), length, false}, {}, net.now).status, CallStatus::ok);
    }
    net.run_for(Nanos{50 * kMs});
    EXPECT_GE(server.endpoint.facts().free_receive_bytes, 7 * kMegabyte);
    const EndpointCounters& counters = server.endpoint.counters();
    const Counter& over = of_prefix ? counters.over_bytes_per_prefix : counters.over_bytes_per_address;
    EXPECT_GE(over.get(), 3U);
    EXPECT_EQ(over.get(), counters.dropped(MessageDrop::over_share));
    silent = false;
    EXPECT_TRUE(net.run([&] { return arrived == 4; }));
  }
}

/// A server, many sessions of one address, and one session of another.
struct Crowd {
  static constexpr std::uint32_t kSessions = 12;
  static EndpointConfig config() {
    EndpointConfig config = small();
    config.max_sessions = 16;
    config.receive_bytes = 1 << 20;
    config.max_message_bytes = 64 << 10;
    return config;
  }

  Crowd() {
    for (std::uint32_t i = 0; i < kSessions; ++i) sessions.push_back(net.connect(hostile, server).first);
    session = net.connect(honest, server).first;
    EXPECT_EQ(server.endpoint.facts().free_sessions, 3U);
  }
  /// Each session of the crowd asks as often as it may at once.
  void ask_all(std::uint32_t length, const RequestOptions& options = {}) {
    for (const SessionId each : sessions) {
      for (std::uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(hostile.endpoint.request(each, {bytes.data(), length, false}, {}, options, net.now).status,
                  CallStatus::ok);
      }
    }
  }
  /// The other one asks. Returns whether the response came within a few round trips.
  bool answers_the_other(std::uint32_t length = 32) {
    honest.events.clear();
    const Submitted asked = honest.endpoint.request(session, {bytes.data(), length, false},
                                                    {response.data(), 32U << 10, false}, {}, net.now);
    const auto answered = [&] {
      return std::ranges::any_of(honest.events, [&](const MessageEvent& event) {
        return event.kind == EventKind::response && event.id == asked.id && event.status == MessageStatus::ok;
      });
    };
    return net.run(answered, Nanos{2 * kMs});
  }

  Loopback net{1};
  Loopback::Host& server = net.add(config());
  Loopback::Host& hostile = net.add([] {
    EndpointConfig many = config();
    many.max_messages = 1024;
    return many;
  }());
  Loopback::Host& honest = net.add(small());
  std::vector<SessionId> sessions;
  SessionId session;
  std::vector<std::uint8_t> bytes = pattern(64 << 10, 1);
  std::vector<std::uint8_t> response = std::vector<std::uint8_t>(32 << 10);
};

TEST(Share, of_places_is_left_for_others_by_one_who_acknowledges_no_refusal) {
  Crowd crowd;
  crowd.server.handle = [&](const MessageEvent& event) {
    return event.kind == EventKind::request &&
           crowd.server.endpoint.respond(event.id, {event.data, event.length}, {.copy = true}, crowd.net.now) ==
               CallStatus::ok;
  };
  crowd.hostile.deaf = true;
  crowd.ask_all(64, {.stream = true});  // the server takes no streams
  crowd.net.run_for(Nanos{50 * kMs});
  EXPECT_LT(crowd.server.endpoint.facts().free_messages, 256U / 4) << "it has nearly all";
  EXPECT_GT(crowd.server.endpoint.counters().over_messages_per_address.get(), 0U);
  EXPECT_EQ(crowd.server.endpoint.counters().dropped(MessageDrop::over_share),
            crowd.server.endpoint.counters().over_messages_per_address.get());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(crowd.answers_the_other());
}

TEST(Share, of_memory_is_left_for_others_by_one_who_acknowledges_no_copied_response) {
  constexpr std::uint32_t kAnswer = 16 << 10;
  Crowd crowd;
  std::uint32_t refused = 0;
  crowd.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return false;
    const ConstBuffer answer{crowd.bytes.data(), kAnswer, false};
    if (crowd.server.endpoint.respond(event.id, answer, {.copy = true}, crowd.net.now) == CallStatus::ok) return true;
    ++refused;
    return crowd.server.endpoint.release(event.id, crowd.net.now) == CallStatus::ok;
  };
  crowd.hostile.deaf = true;
  crowd.ask_all(32);
  crowd.net.run_for(Nanos{50 * kMs});
  EXPECT_LT(crowd.server.endpoint.facts().free_receive_bytes, (1U << 20) / 4) << "it has nearly all";
  EXPECT_GT(refused, 0U);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(crowd.answers_the_other());
}

TEST(Share, of_memory_and_of_turns_is_left_for_others_by_one_whose_requests_wait_for_a_slow_handler) {
  for (const std::uint32_t length : {64U, 16U << 10}) {  // places, memory
    SCOPED_TRACE(length);
    Crowd crowd;
    crowd.server.request_limit = 0;
    crowd.ask_all(length);
    crowd.net.run_for(Nanos{50 * kMs});
    EXPECT_GT(crowd.server.endpoint.counters().dropped(MessageDrop::over_share), 0U);
    const auto handle_one = [&] {
      MessageEvent event;
      const bool found = crowd.server.endpoint.poll({&event, 1}, 1) == 1 && event.kind == EventKind::request;
      return found && crowd.server.endpoint.respond(event.id, {}, {}, crowd.net.now) == CallStatus::ok;
    };
    for (int i = 0; i < 10; ++i) {
      const Submitted asked =
          crowd.honest.endpoint.request(crowd.session, {crowd.bytes.data(), 1024, false}, {}, {}, crowd.net.now);
      ASSERT_EQ(asked.status, CallStatus::ok);
      crowd.net.run_for(Nanos{kMs});
      ASSERT_TRUE(handle_one());
      ASSERT_TRUE(handle_one());
      crowd.net.run_for(Nanos{kMs});
      EXPECT_EQ(crowd.honest.endpoint.counters().responses.get(), i + 1U) << "one of two is the other's";
    }
  }
}

TEST(Share, of_the_applications_places_is_left_for_others_by_one_who_acknowledges_no_response) {
  Crowd crowd;
  crowd.server.request_limit = 16;  // each is taken until its response, which is not copied, is acknowledged
  crowd.server.handle = [&](const MessageEvent& event) {
    if (event.kind == EventKind::sent) {
      ++crowd.server.request_limit;
      return true;
    }
    if (event.kind != EventKind::request) return false;
    --crowd.server.request_limit;
    return crowd.server.endpoint.respond(event.id, {crowd.bytes.data(), 1024, false}, {}, crowd.net.now) ==
           CallStatus::ok;
  };
  crowd.hostile.deaf = true;
  crowd.ask_all(32);
  crowd.net.run_for(Nanos{50 * kMs});
  EXPECT_EQ(crowd.server.request_limit, 1U) << "it has 15 of 16";
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(crowd.answers_the_other());
    crowd.net.run_for(Nanos{kMs});  // it acknowledges that
    EXPECT_EQ(crowd.server.request_limit, 1U);
  }
  // Once its sessions are lost, what they had is free again.
  ASSERT_TRUE(crowd.net.run([&] { return crowd.server.endpoint.facts().free_sessions == 15; }, Nanos{60'000 * kMs}));
  crowd.net.run_for(Nanos{kMs});
  EXPECT_EQ(crowd.server.request_limit, 16U);
  EXPECT_TRUE(crowd.answers_the_other());
}

TEST(Share, of_one_address_alone_is_nearly_everything) {
  Crowd crowd;
  crowd.server.request_limit = 0;
  crowd.ask_all(64);
  crowd.net.run_for(Nanos{50 * kMs});
  EXPECT_LE(crowd.server.endpoint.facts().free_messages, 256U / 6);
  Crowd other;
  other.server.request_limit = 0;
  other.ask_all(4096);
  other.net.run_for(Nanos{50 * kMs});
  EXPECT_LE(other.server.endpoint.facts().free_receive_bytes, (1U << 20) / 6);
}

TEST(Stalled, message_is_given_up_and_its_sender_told) {
  Two two(small(), patient_for(Nanos{200 * kMs}));
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& packet) {
    const auto fragment = fragment_of(packet);
    return &from == &two.client && fragment && fragment->offset != 0;
  };
  ASSERT_EQ(send(two, kMegabyte).status, CallStatus::ok);
  two.net.run_for(Nanos{150 * kMs});
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 7U << 20);
  two.net.run_for(Nanos{100 * kMs});
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 8U << 20);
  EXPECT_EQ(two.server.endpoint.counters().messages_stalled.get(), 1U);
  ASSERT_TRUE(two.until(two.client, EventKind::sent));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::refused);
  EXPECT_EQ(two.client.events[0].code, static_cast<std::uint16_t>(RefusalCode::stalled));
  two.net.tap = nullptr;
  ASSERT_EQ(send(two, kMegabyte).status, CallStatus::ok);
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
  ASSERT_EQ(send(two, kMegabyte).status, CallStatus::ok);
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
  EXPECT_TRUE(two.net.run([&] { return bytes == kMegabyte + 20 * 1000; }));
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
