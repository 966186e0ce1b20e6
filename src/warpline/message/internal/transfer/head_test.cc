// SPDX-License-Identifier: Apache-2.0
// What messages tell beside their bytes: metadata, and the time that is left for a request.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "warpline/message/endpoint.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

EndpointConfig with_datagrams(std::uint32_t bytes) {
  EndpointConfig config = small();
  config.datagram_bytes = bytes;
  return config;
}

/// Metadata, data and datagrams of these lengths.
class Metadata : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> {
 protected:
  const std::uint32_t metadata_ = std::get<0>(GetParam());
  const std::uint32_t length_ = std::get<1>(GetParam());
  const Bytes told_ = pattern(metadata_, 7);
};

TEST_P(Metadata, comes_with_a_request_and_with_its_response) {
  Two two(with_datagrams(std::get<2>(GetParam())));
  const EndpointFacts before = two.client.endpoint.facts();
  two.net.impairment.loss = 50'000;
  two.net.impairment.reorder = 100'000;
  two.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return false;
    EXPECT_EQ(bytes_of(event.metadata()), told_);
    EXPECT_EQ(Bytes(event.data, event.data + event.length), pattern(length_, 1));
    // Both lie in the request.
    EXPECT_EQ(two.server.endpoint.respond(event.id, {event.data, event.length, false}, {.metadata = event.metadata()},
                                          two.net.now),
              CallStatus::ok);
    return true;
  };
  Bytes lent = told_;
  const Bytes data = pattern(length_, 1);
  const Submitted made = two.client.endpoint.request(two.session, {data.data(), length_, false}, {},
                                                     {.response_in_endpoint = true, .metadata = lent}, two.net.now);
  ASSERT_EQ(made.status, CallStatus::ok);
  std::fill(lent.begin(), lent.end(), 0);  // copied by the call
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  const MessageEvent& event = two.client.events[0];
  ASSERT_EQ(event.status, MessageStatus::ok);
  EXPECT_EQ(bytes_of(event.metadata()), told_);
  EXPECT_EQ(Bytes(event.data, event.data + event.length), data);
  EXPECT_EQ(two.client.endpoint.release(event.id, two.net.now), CallStatus::ok);
  two.net.run_for(Nanos{100 * kMs});
  EXPECT_EQ(two.client.endpoint.facts().free_receive_bytes, before.free_receive_bytes);
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, before.free_receive_bytes);
  EXPECT_EQ(two.server.endpoint.facts().free_messages, before.free_messages);
}

TEST_P(Metadata, comes_with_a_one_way_message) {
  Two two(with_datagrams(std::get<2>(GetParam())));
  ASSERT_EQ(
      two.client.endpoint.send(two.session, {two.payload.data(), length_, false}, {.metadata = told_}, two.net.now)
          .status,
      CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::sent));
  EXPECT_EQ(two.client.events[0].length, length_);
  const MessageEvent& event = Two::first(two.server, EventKind::message);
  EXPECT_EQ(bytes_of(event.metadata()), told_);
  EXPECT_EQ(Bytes(event.data, event.data + event.length), Bytes(two.payload.begin(), two.payload.begin() + length_));
}

TEST_P(Metadata, of_a_response_to_a_buffer_is_left_out) {
  Two two(with_datagrams(std::get<2>(GetParam())));
  two.response.assign(length_, 0);
  ASSERT_EQ(two.request(10).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  ASSERT_EQ(two.server.endpoint.respond(two.server.events[0].id, {two.payload.data(), length_, false},
                                        {.metadata = told_}, two.net.now),
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::ok);
  EXPECT_EQ(two.client.events[0].length, length_);
  EXPECT_TRUE(two.client.events[0].metadata().empty());
  EXPECT_TRUE(std::equal(two.response.begin(), two.response.end(), two.payload.begin()));
}

INSTANTIATE_TEST_SUITE_P(Lengths, Metadata,
                         testing::Combine(testing::Values(1, 100, 129, kMaxMetadataBytes),
                                          testing::Values(0, 28, 128, 1000, 100'000), testing::Values(256, 1472)));

TEST(MetadataOf, a_message_that_is_too_long_is_not_taken) {
  Two two;
  const Bytes told(kMaxMetadataBytes + 1);
  EXPECT_EQ(two.request(10, {.metadata = told}).status, CallStatus::too_long);
  EXPECT_EQ(two.client.endpoint.facts().free_messages, 256U);
}

TEST(MetadataOf, a_request_of_the_greatest_length_is_not_counted_into_it) {
  Two two;
  const Bytes told(kMaxMetadataBytes);
  ASSERT_EQ(two.request(1 << 20, {.metadata = told}).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_EQ(two.server.events[0].length, 1U << 20);
}

TEST(MetadataOf, a_request_lies_beside_the_buffers_of_a_source) {
  Bytes memory(4000);
  EndpointConfig config = small();
  config.buffers.context = &memory;
  config.buffers.take = [](void* context, SessionId, std::uint16_t, std::uint32_t length) -> MutableBuffer {
    auto& bytes = *static_cast<Bytes*>(context);
    EXPECT_EQ(length, bytes.size());
    return {bytes.data(), length, false};
  };
  config.buffers.give = [](void* context, MutableBuffer buffer) {
    EXPECT_EQ(buffer.length, static_cast<Bytes*>(context)->size());
  };
  Two two(small(), config);
  const Bytes told = pattern(300, 3);
  ASSERT_EQ(two.request(4000, {.metadata = told}).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  const MessageEvent& event = two.server.events[0];
  EXPECT_EQ(event.data, memory.data());
  EXPECT_TRUE(std::equal(memory.begin(), memory.end(), two.payload.begin()));
  EXPECT_EQ(bytes_of(event.metadata()), told);
  EXPECT_EQ(two.server.endpoint.release(event.id, two.net.now), CallStatus::ok);
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 8U << 20);
}

TEST(MetadataOf, a_request_leaves_in_no_head_that_is_too_small_for_it) {
  Two two;
  two.net.run_for(Nanos{7 * kMs});  // the path's probe
  const Bytes told(kMaxMetadataBytes);
  ASSERT_EQ(two.request(10, {.metadata = told}).status, CallStatus::ok);
  Bytes head(kMetadataHeadCapacity + 1, 0x77);
  Outgoing out;
  out.head = head.data();
  out.head_capacity = kMetadataHeadCapacity - 1;
  EXPECT_EQ(two.client.endpoint.transmit({&out, 1}, two.net.now), 0U);
  EXPECT_EQ(two.client.endpoint.counters().heads_too_small.get(), 1U);
  out.head_capacity = kMetadataHeadCapacity;
  ASSERT_EQ(two.request(10).status, CallStatus::ok);  // it asks for a packet again
  ASSERT_EQ(two.client.endpoint.transmit({&out, 1}, two.net.now), 1U);
  EXPECT_GT(out.head_length, kMaxMetadataBytes);
  EXPECT_EQ(head.back(), 0x77);
}

TEST(TimeLeft, is_told_with_a_request_that_has_a_deadline) {
  Two two;
  two.net.run_for(Nanos{7 * kMs});
  const Nanos deadline{two.net.now.value + 3 * kMs};
  ASSERT_EQ(two.request(10, {.deadline = deadline}).status, CallStatus::ok);
  ASSERT_EQ(two.request(10).status, CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return two.server.events.size() == 2; }));
  EXPECT_EQ(two.server.events[0].deadline().value, deadline.value + two.net.impairment.delay.value);
  EXPECT_EQ(two.server.events[0].length, 10U);
  EXPECT_TRUE(two.server.events[0].metadata().empty());
  EXPECT_EQ(two.server.events[1].deadline(), kNever);
}

TEST(TimeLeft, is_told_anew_with_each_packet) {
  Two two;
  int lost = 2;
  two.net.tap = [&](const Loopback::Host& from, Bytes&) { return &from == &two.client && lost-- > 0; };
  const Nanos deadline{two.net.now.value + 500 * kMs};
  ASSERT_EQ(two.request(10, {.deadline = deadline}).status, CallStatus::ok);
  const Nanos begin = two.net.now;
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_GT(two.net.now.value, begin.value + 2 * kMs);
  EXPECT_EQ(two.server.events[0].deadline().value, deadline.value + two.net.impairment.delay.value);
}

TEST(TimeLeft, that_is_over_keeps_a_request_from_the_application) {
  Two two;
  two.server.request_limit = 0;  // as if its handlers had no time
  ASSERT_EQ(two.request(10, {.code = 1, .deadline = Nanos{two.net.now.value + 2 * kMs}}).status, CallStatus::ok);
  ASSERT_EQ(two.request(10, {.code = 2}).status, CallStatus::ok);
  two.net.run_for(Nanos{kMs});
  two.client.dead = true;  // and nothing that it says arrives
  two.net.run_for(Nanos{5 * kMs});
  two.server.request_limit = 16;
  two.net.run_for(Nanos{10'000});
  ASSERT_EQ(two.server.events.size(), 1U);
  EXPECT_EQ(two.server.events[0].code, 2);
  EXPECT_EQ(two.server.endpoint.counters().requests_expired.get(), 1U);
  EXPECT_EQ(two.server.endpoint.counters().handled.get(), 1U);
}

TEST(TimeLeft, that_is_over_is_a_refusal_to_whoever_still_waits) {
  Two two;
  two.server.request_limit = 0;
  // A peer whose deadline is longer than what it told: its packet says so.
  two.net.tap = [&](const Loopback::Host& from, Bytes& bytes) {
    constexpr std::uint32_t kBefore = packet::MessageHeader::kLength + packet::MessageFragment::kLength;
    if (&from == &two.client && bytes.size() == kBefore + 8 + 10) packet::store_be64(bytes.data() + kBefore, kMs);
    return false;
  };
  ASSERT_EQ(two.request(10, {.deadline = Nanos{two.net.now.value + 1000 * kMs}}).status, CallStatus::ok);
  two.net.run_for(Nanos{2 * kMs});
  two.server.request_limit = 16;
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::refused);
  EXPECT_EQ(two.client.events[0].code, static_cast<std::uint16_t>(RefusalCode::expired));
  EXPECT_EQ(two.client.events[0].reach, Reach::not_handled);
  EXPECT_TRUE(two.server.events.empty());
  two.net.run_for(Nanos{10 * kMs});
  EXPECT_EQ(two.server.endpoint.facts().free_messages, 256U);
}

TEST(TimeLeft, of_a_one_way_message_means_nothing) {
  Two two;
  two.server.request_limit = 0;
  two.net.tap = [&](const Loopback::Host& from, Bytes& bytes) {
    constexpr std::uint32_t kBefore = packet::MessageHeader::kLength + packet::MessageFragment::kLength;
    if (&from == &two.client && bytes.size() == kBefore + 8 + 1 + 10) packet::store_be64(bytes.data() + kBefore, 1);
    return false;
  };
  const Bytes told(1);
  ASSERT_EQ(
      two.client.endpoint.send(two.session, {two.payload.data(), 10, false}, {.metadata = told}, two.net.now).status,
      CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::message));
  EXPECT_EQ(two.server.events[0].deadline(), kNever);
}

}  // namespace
}  // namespace warpline::message
