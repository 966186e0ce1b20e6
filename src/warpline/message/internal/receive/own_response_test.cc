// SPDX-License-Identifier: Apache-2.0
// Responses that go into memory of the endpoint that asked.
#include <gtest/gtest.h>

#include <set>

#include "warpline/message/endpoint.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

/// The server answers each request with as many bytes as its code says, in kibibytes, unless it is to wait.
struct Asked : Two {
  explicit Asked(EndpointConfig client_config = small()) : Two(client_config) {
    server.handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::request || !answers) return false;
      EXPECT_EQ(respond(event), CallStatus::ok);
      return true;
    };
  }
  CallStatus respond(const MessageEvent& request) {
    return server.endpoint.respond(request.id, {payload.data(), request.code * 1024U, false}, {.code = request.code},
                                   net.now);
  }
  MessageId ask(std::uint16_t kib, RequestOptions options = {}) {
    options.code = kib;
    options.response_in_endpoint = true;
    const Submitted made = client.endpoint.request(session, {payload.data(), 10, false}, {}, options, net.now);
    EXPECT_EQ(made.status, CallStatus::ok);
    return made.id;
  }
  [[nodiscard]] bool is_answer(const MessageEvent& event, std::uint32_t length) const {
    return event.kind == EventKind::response && event.status == MessageStatus::ok && event.length == length &&
           std::equal(event.data, event.data + length, payload.begin());
  }

  bool answers = true;
};

TEST(ResponseInEndpoint, of_any_length_is_there_until_it_is_released) {
  Asked two;
  const EndpointFacts before = two.client.endpoint.facts();
  for (const std::uint16_t kib : {0, 1, 2, 100, 1024}) {
    const MessageId id = two.ask(kib);
    EXPECT_EQ(two.client.endpoint.release(id, two.net.now), CallStatus::unknown_message);  // there is nothing yet
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    two.net.run_for(Nanos{10 * kMs});
    ASSERT_EQ(two.client.events.size(), 1U);
    EXPECT_TRUE(two.is_answer(two.client.events[0], kib * 1024U)) << kib;
    EXPECT_EQ(two.client.endpoint.facts().free_messages, before.free_messages - 1);
    EXPECT_EQ(two.client.endpoint.release(id, two.net.now), CallStatus::ok);
    EXPECT_EQ(two.client.endpoint.release(id, two.net.now), CallStatus::unknown_message);
    EXPECT_EQ(two.client.endpoint.facts().free_messages, before.free_messages);
    EXPECT_EQ(two.client.endpoint.facts().free_receive_bytes, before.free_receive_bytes);
    two.client.events.clear();
  }
}

TEST(ResponseInEndpoint, outlives_its_session) {
  Asked two;
  const MessageId id = two.ask(40);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  ASSERT_EQ(two.client.endpoint.forget(two.session, two.net.now), CallStatus::ok);
  two.net.run_for(Nanos{kMs});
  EXPECT_TRUE(two.is_answer(two.client.events[0], 40 * 1024));
  EXPECT_EQ(two.client.endpoint.release(id, two.net.now), CallStatus::ok);
}

TEST(ResponseInEndpoint, that_is_too_long_for_it_ends_so) {
  EndpointConfig config = small();
  config.max_message_bytes = 10 << 10;
  Asked two(config);
  const MessageId id = two.ask(11);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::too_long);
  EXPECT_EQ(two.client.events[0].length, 11U << 10);
  EXPECT_EQ(two.client.endpoint.release(id, two.net.now), CallStatus::unknown_message);
}

TEST(ResponseInEndpoint, for_which_there_is_no_memory_comes_when_there_is) {
  EndpointConfig config = small();
  config.receive_bytes = 256 << 10;
  config.max_message_bytes = 60 << 10;
  Asked two(config);
  std::vector<MessageEvent> answers;
  two.client.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::response) return false;
    EXPECT_TRUE(two.is_answer(event, 60 << 10));
    answers.push_back(event);
    return true;
  };
  constexpr std::size_t kAsked = 8;
  for (std::size_t i = 0; i < kAsked; ++i) two.ask(60);
  two.net.run_for(Nanos{100 * kMs});
  EXPECT_EQ(answers.size(), 4U + 1);  // as many blocks of 64 KiB, and the room for one that finds none
  const std::uint64_t dropped = two.client.endpoint.counters().dropped(MessageDrop::no_buffer) +
                                two.client.endpoint.counters().dropped(MessageDrop::over_share);
  EXPECT_GT(dropped, 0U);
  EXPECT_LT(dropped, 2 * 4 * 43U);  // its sender is told: all fragments once, then one each time
  ASSERT_TRUE(two.net.run([&] {
    for (const MessageEvent& event : std::exchange(answers, {})) {
      EXPECT_EQ(two.client.endpoint.release(event.id, two.net.now), CallStatus::ok);
    }
    return two.client.endpoint.counters().responses.get() == kAsked;
  }));
}

TEST(ResponseInEndpoint, finds_room_though_both_ends_are_full_of_requests_that_are_kept_until_they_are_answered) {
  constexpr std::uint32_t kLong = 60 << 10;
  constexpr std::size_t kAsked = 7;  // blocks of 32 KiB: all that one address gets of eight
  EndpointConfig config = small();
  config.receive_bytes = 256 << 10;
  config.max_message_bytes = kLong;
  Two two(config, config);
  std::size_t answered = 0;
  for (Loopback::Host* const host : {&two.client, &two.server}) {
    host->handle = [&two, &answered, host](const MessageEvent& event) {
      if (event.kind != EventKind::response) return false;
      EXPECT_EQ(event.status, MessageStatus::ok);
      EXPECT_EQ(host->endpoint.release(event.id, two.net.now), CallStatus::ok);
      ++answered;
      return true;
    };
  }
  const ConstBuffer bytes{two.payload.data(), kLong, false};
  const ConstBuffer asked{two.payload.data(), kLong / 2, false};
  for (std::size_t i = 0; i < kAsked; ++i) {
    const RequestOptions options{.response_in_endpoint = true};
    ASSERT_EQ(two.client.endpoint.request(two.session, asked, {}, options, two.net.now).status, CallStatus::ok);
    ASSERT_EQ(two.server.endpoint.request(two.there, asked, {}, options, two.net.now).status, CallStatus::ok);
  }
  ASSERT_TRUE(two.net.run([&] {
    return Two::count(two.client, EventKind::request) == kAsked && Two::count(two.server, EventKind::request) == kAsked;
  }));
  EXPECT_EQ(two.client.endpoint.facts().free_receive_bytes, 32U << 10) << "too little for a response";
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 32U << 10);
  for (Loopback::Host* const host : {&two.client, &two.server}) {
    for (const MessageEvent& event : std::exchange(host->events, {})) {
      if (event.kind != EventKind::request) continue;
      EXPECT_EQ(host->endpoint.respond(event.id, bytes, {}, two.net.now), CallStatus::ok);
    }
  }
  EXPECT_TRUE(two.net.run([&] { return answered == 2 * kAsked; }));
}

TEST(ResponseInEndpoint, gives_its_memory_back_when_the_request_ends_otherwise) {
  for (const bool cancelled : {true, false}) {
    Asked two;
    const EndpointFacts before = two.client.endpoint.facts();
    const MessageId id = two.ask(1024);
    ASSERT_TRUE(two.net.run([&] { return two.client.endpoint.facts().free_receive_bytes < before.free_receive_bytes; },
                            Nanos{kMs}));
    EXPECT_EQ(
        cancelled ? two.client.endpoint.cancel(id, two.net.now) : two.client.endpoint.close(two.session, two.net.now),
        CallStatus::ok);
    two.net.run_for(Nanos{10 * kMs});
    EXPECT_EQ(two.client.events[0].reach, Reach::handled);
    EXPECT_EQ(two.client.endpoint.facts().free_messages, before.free_messages);
    EXPECT_EQ(two.client.endpoint.facts().free_receive_bytes, before.free_receive_bytes);
  }
}

TEST(ResponseInEndpoint, survives_a_peer_that_answers_and_then_refuses) {
  Asked two;
  two.answers = false;
  const EndpointFacts before = two.client.endpoint.facts();
  two.ask(100);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  ASSERT_EQ(two.respond(two.server.events[0]), CallStatus::ok);
  // All fragments but the first become refusals.
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    packet::MessageHeader header;
    if (&from != &two.server ||
        packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header) != packet::MessageParse::ok ||
        !header.has(packet::kMessageHasFragment)) {
      return false;
    }
    const std::uint32_t at = packet::MessageHeader::kLength + header.ack_length();
    packet::MessageFragment fragment;
    EXPECT_EQ(packet::parse(bytes.data() + at, header.payload_length, fragment), packet::MessageParse::ok);
    if (fragment.offset == 0) return false;
    packet::emit(
        packet::MessageFragment{
            .kind = packet::FragmentKind::refuse, .slot = fragment.slot, .code = 1, .sequence = fragment.sequence},
        bytes.data() + at);
    bytes.resize(at + packet::MessageFragment::kLength);
    packet::store_be16(bytes.data() + packet::MessageHeader::kPayloadLength, 0);
    return false;
  };
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::refused);
  EXPECT_EQ(two.client.endpoint.facts().free_receive_bytes, before.free_receive_bytes);
}

TEST(ResponseInEndpoint, goes_where_the_buffer_source_says) {
  struct Source {
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(200 << 10);
    std::multiset<const std::uint8_t*> lent;
  } source;
  EndpointConfig config = small();
  config.buffers.context = &source;
  config.buffers.take = [](void* context, SessionId, std::uint16_t code, std::uint32_t length) -> MutableBuffer {
    auto& from = *static_cast<Source*>(context);
    EXPECT_EQ(code, 150);
    from.lent.insert(from.memory.data());
    return {from.memory.data(), length, false};
  };
  config.buffers.give = [](void* context, MutableBuffer buffer) {
    EXPECT_EQ(buffer.length, 150U << 10);
    EXPECT_EQ(static_cast<Source*>(context)->lent.erase(buffer.data), 1U);
  };
  Asked two(config);
  const MessageId id = two.ask(150);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].data, source.memory.data());
  EXPECT_TRUE(two.is_answer(two.client.events[0], 150 << 10));
  EXPECT_EQ(source.lent.size(), 1U);
  EXPECT_EQ(two.client.endpoint.release(id, two.net.now), CallStatus::ok);
  EXPECT_TRUE(source.lent.empty());
}

TEST(ResponseInEndpoint, and_a_buffer_contradict_each_other) {
  Two two;
  EXPECT_EQ(two.request(10, {.response_in_endpoint = true}).status, CallStatus::not_allowed);
}

}  // namespace
}  // namespace warpline::message
