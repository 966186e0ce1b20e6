// SPDX-License-Identifier: Apache-2.0
// Peers that say of streams what is not so, by endpoints that send whatever heads they like.
#include <gtest/gtest.h>

#include <functional>

#include "warpline/rpc/streams/streams_testing.h"

namespace warpline::rpc {
namespace {

using message::EventKind;
using message::kMs;
using message::MessageEvent;
using message::MessageStatus;
using Head = packet::MessageStreamHead;
using Kind = Head::Kind;

constexpr std::uint32_t kLiar = 0x1001;

std::vector<std::uint8_t> message_of(const Head& head, std::uint32_t bytes = 0) {
  std::vector<std::uint8_t> message(Head::kLength + bytes);
  packet::emit(head, message.data());
  return message;
}

/// A server of streams, and a client that speaks for itself.
struct LyingClient {
  explicit LyingClient(const Head& open = {Kind::open, 0, kLiar, 0, 65'536}, std::uint32_t bytes = 0) {
    pair.client.handle = {};
    pair.client.work = {};
    pair.client.due = {};
    request = message_of(open, bytes);
    const message::Submitted asked =
        pair.client.endpoint.request(pair.session, {request.data(), static_cast<std::uint32_t>(request.size())}, {},
                                     {.response_in_endpoint = true, .stream = true}, pair.net.now);
    EXPECT_EQ(asked.status, message::CallStatus::ok);
    pair.net.run_for(Nanos{10 * kMs});
    for (const MessageEvent& event : pair.client.events) {
      Head head;
      if (event.kind == EventKind::stream_piece &&
          packet::parse(event.data, event.length, head) == packet::MessageParse::ok)
        told = head;
    }
  }

  void say(const std::vector<std::uint8_t>& message) {
    said.push_back(message);
    const message::ConstBuffer bytes{said.back().data(), static_cast<std::uint32_t>(said.back().size())};
    EXPECT_EQ(pair.client.endpoint
                  .send(pair.session, bytes,
                        {
                            .stream = true,
                        },
                        pair.net.now)
                  .status,
              message::CallStatus::ok);
    pair.net.run_for(Nanos{10 * kMs});
  }
  void piece(std::uint32_t number, std::uint32_t bytes) {
    say(message_of({Kind::piece, told.from, kLiar, number, 65'536}, bytes));
  }
  [[nodiscard]] const CallStreamCounters& counters() const { return pair.server_streams->counters(); }
  /// The stream has ended, everybody was told, and all memory is back.
  void expect_broken() {
    EXPECT_EQ(counters().broken.get(), 1U);
    ASSERT_EQ(pair.taken.size(), 1U);
    EXPECT_TRUE(pair.taken.front().ended());
    EXPECT_EQ(pair.taken.front().wait().status, MessageStatus::refused);
    EXPECT_EQ(pair.taken.front().wait().code, static_cast<std::uint16_t>(message::RefusalCode::broken_stream));
    EXPECT_EQ(message::Two::count(pair.client, EventKind::response), 1);
    EXPECT_EQ(message::Two::first(pair.client, EventKind::response).status, MessageStatus::refused);
    pair.taken.clear();
    pair.net.run_for(Nanos{10 * kMs});
    EXPECT_TRUE(pair.server_has_nothing());
  }

  StreamPair pair;
  std::vector<std::uint8_t> request;
  Head told;
  std::vector<std::vector<std::uint8_t>> said;
};

TEST(LyingClient, that_speaks_the_truth_is_heard) {
  LyingClient client;
  EXPECT_EQ(client.told.kind, Kind::credit);
  EXPECT_EQ(client.told.to, kLiar);
  EXPECT_EQ(client.told.credit, 65'536U);
  client.piece(1, 10);
  client.piece(0, 20);
  client.say(message_of({Kind::end, client.told.from, kLiar, 2, 65'536}));
  std::span<const std::uint8_t> piece;
  CallStream& stream = client.pair.taken.front();
  EXPECT_EQ(stream.try_read(piece), StreamRead::piece);
  EXPECT_EQ(piece.size(), 20U);
  EXPECT_EQ(stream.try_read(piece), StreamRead::piece);
  EXPECT_EQ(stream.try_read(piece), StreamRead::end);
  EXPECT_EQ(client.counters().broken.get(), 0U);
}

TEST(LyingClient, sends_pieces_beyond_its_credit) {
  LyingClient client;
  client.piece(0, 64'000);
  EXPECT_EQ(client.counters().pieces_in.get(), 1U);
  client.piece(1, 1000);
  EXPECT_EQ(client.counters().beyond_credit.get(), 1U);
  client.expect_broken();
}

TEST(LyingClient, opens_with_more_than_a_request_may_have) {
  const LyingClient most({Kind::open, 0, kLiar, 0, 65'536}, kMaxPieceBytes);
  EXPECT_EQ(most.counters().taken.get(), 1U);
  const LyingClient more({Kind::open, 0, kLiar, 0, 65'536}, kMaxPieceBytes + 1);
  EXPECT_EQ(more.counters().taken.get(), 0U);
  EXPECT_EQ(more.counters().malformed.get(), 1U);
}

TEST(LyingClient, sends_one_piece_that_is_longer_than_all_its_credit) {
  LyingClient client;
  client.piece(0, 200'000);
  EXPECT_EQ(client.counters().beyond_credit.get(), 1U);
  client.expect_broken();
}

TEST(LyingClient, sends_pieces_with_numbers_far_ahead) {
  for (const std::uint32_t number : {256U, 1000U, 0x7fffffffU}) {
    LyingClient client;
    client.piece(number, 1);
    EXPECT_EQ(client.counters().beyond_credit.get(), 1U);
    client.expect_broken();
  }
}

TEST(LyingClient, sends_pieces_again) {
  for (const std::uint32_t number : {0U, 2U, 0xffffffffU}) {
    LyingClient client;
    client.piece(0, 1);
    client.piece(2, 1);
    client.piece(number, 1);
    EXPECT_EQ(client.counters().repeated.get(), 1U);
    client.expect_broken();
  }
}

TEST(LyingClient, ends_twice_or_short_or_far_ahead_or_goes_on) {
  const auto end = [](LyingClient& client, std::uint32_t total) {
    client.say(message_of({Kind::end, client.told.from, kLiar, total, 65'536}));
  };
  const std::vector<std::function<void(LyingClient&)>> lies = {
      [&](LyingClient& client) { end(client, 3), end(client, 3); },
      [&](LyingClient& client) { client.piece(3, 1), end(client, 3); },
      [&](LyingClient& client) { end(client, 257); },
      [&](LyingClient& client) { end(client, 0xffffffff); },
      [&](LyingClient& client) { end(client, 2), client.piece(2, 1); },
  };
  for (const auto& lie : lies) {
    LyingClient client;
    lie(client);
    EXPECT_EQ(client.counters().repeated.get(), 1U);
    client.expect_broken();
  }
}

TEST(LyingClient, speaks_of_streams_that_are_not_there) {
  LyingClient client;
  const std::uint32_t other_generation = client.told.from + 0x1000;
  const std::uint32_t other_place = client.told.from + 1;
  for (const std::uint32_t to : {other_generation, other_place, 0xffffffffU, 0x1fffU})
    client.say(message_of({Kind::piece, to, kLiar, 0, 65'536}, 10));
  client.say(message_of({Kind::piece, client.told.from, kLiar + 1, 0, 65'536}, 10));
  EXPECT_EQ(client.counters().unknown.get(), 5U);
  EXPECT_EQ(client.counters().broken.get(), 0U);
  // After its end, too.
  EXPECT_TRUE(client.pair.taken.front().finish(0));
  client.pair.net.run_for(Nanos{10 * kMs});
  client.piece(0, 10);
  client.pair.taken.clear();
  client.pair.net.run_for(Nanos{10 * kMs});
  client.piece(0, 10);
  EXPECT_EQ(client.counters().unknown.get(), 7U);
  for (const MessageEvent& event : client.pair.client.events) {
    if (event.kind == EventKind::response) (void)client.pair.client.endpoint.release(event.id, client.pair.net.now);
  }
  client.pair.net.run_for(Nanos{10 * kMs});
  EXPECT_TRUE(client.pair.server_has_nothing());
}

TEST(LyingClient, sends_what_is_no_head) {
  LyingClient client;
  client.say({});
  client.say(std::vector<std::uint8_t>(19, 2));
  client.say(std::vector<std::uint8_t>(300, 2));
  client.say(message_of({Kind::answer, client.told.from, kLiar, 0, 65'536}));
  client.say(message_of({Kind::open, 0, kLiar, 0, 65'536}));
  client.say(message_of({Kind::credit, client.told.from, kLiar, 0, 65'536}, 1));
  EXPECT_EQ(client.counters().malformed.get(), 6U);
  EXPECT_FALSE(client.pair.taken.front().ended());
}

TEST(LyingClient, opens_with_what_is_no_head) {
  for (const Head& open : {Head{Kind::open, 1, kLiar, 0, 9}, Head{Kind::open, 0, 0, 0, 9},
                           Head{Kind::piece, 1, kLiar, 0, 9}, Head{Kind{77}, 0, kLiar, 0, 9}}) {
    const LyingClient client(open, 100);
    EXPECT_EQ(client.counters().malformed.get(), 1U);
    EXPECT_TRUE(client.pair.taken.empty());
    EXPECT_EQ(message::Two::first(client.pair.client, EventKind::response).status, MessageStatus::refused);
  }
}

TEST(LyingClient, gives_credit_that_makes_no_sense) {
  for (const std::uint32_t credit : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    LyingClient client({Kind::open, 0, kLiar, 0, credit});
    CallStream& stream = client.pair.taken.front();
    const std::vector<std::uint8_t> piece(10'000);
    std::uint32_t written = 0;
    for (int turn = 0; turn < 50; ++turn) {
      while (stream.try_write(piece)) ++written;
      for (const MessageEvent& event : std::exchange(client.pair.client.events, {}))
        (void)client.pair.client.endpoint.release(event.id, client.pair.net.now);
      client.say(message_of(
          {Kind::credit, client.told.from, kLiar, 0, credit + static_cast<std::uint32_t>(turn) * 0x40000000}));
    }
    EXPECT_EQ(client.counters().broken.get(), 0U);
    EXPECT_LT(written, 2000U);
  }
}

/// A client of streams, and a server that answers as it likes.
struct LyingServer {
  LyingServer() {
    pair.server.handle = {};
    pair.server.work = {};
    pair.server.due = {};
    stream = pair.open({.patience = Nanos{500 * kMs}});
    EXPECT_TRUE(pair.net.run([&] { return message::Two::count(pair.server, EventKind::stream_request) != 0; }));
    const MessageEvent& event = message::Two::first(pair.server, EventKind::stream_request);
    request = event.id;
    EXPECT_EQ(packet::parse(event.data, event.length, told), packet::MessageParse::ok);
  }
  void say(const std::vector<std::uint8_t>& message) {
    said.push_back(message);
    const message::ConstBuffer bytes{said.back().data(), static_cast<std::uint32_t>(said.back().size())};
    EXPECT_EQ(pair.server.endpoint.send(pair.there, bytes, {.stream = true}, pair.net.now).status,
              message::CallStatus::ok);
    pair.net.run_for(Nanos{10 * kMs});
  }
  void answer(const std::vector<std::uint8_t>& message) {
    EXPECT_EQ(pair.server.endpoint.respond(request, {message.data(), static_cast<std::uint32_t>(message.size())},
                                           {.code = 4, .copy = true}, pair.net.now),
              message::CallStatus::ok);
    pair.net.run_for(Nanos{10 * kMs});
  }
  void expect_broken() {
    ASSERT_TRUE(stream.ended());
    EXPECT_EQ(stream.wait().status, MessageStatus::refused);
    EXPECT_EQ(stream.wait().code, static_cast<std::uint16_t>(message::RefusalCode::broken_stream));
    stream.close();
    pair.net.run_for(Nanos{10 * kMs});
    EXPECT_TRUE(pair.client_has_nothing());
  }

  StreamPair pair;
  CallStream stream;
  message::MessageId request;
  Head told;
  std::vector<std::vector<std::uint8_t>> said;
};

TEST(LyingServer, answers_with_what_is_no_answer) {
  const auto answers = [](const Head& told) {
    return std::vector<std::vector<std::uint8_t>>{{},
                                                  std::vector<std::uint8_t>(19),
                                                  std::vector<std::uint8_t>(5000, 5),
                                                  message_of({Kind::piece, told.from, kLiar, 0, 0}),
                                                  message_of({Kind::answer, told.from + 1, kLiar, 0, 0}),
                                                  message_of({Kind::answer, told.from, kLiar, 257, 0}),
                                                  message_of({Kind::answer, told.from, kLiar, 0x80000000, 0}, 50)};
  };
  for (std::size_t i = 0; i < answers({}).size(); ++i) {
    LyingServer server;
    server.answer(answers(server.told)[i]);
    server.expect_broken();
  }
}

TEST(LyingServer, answers_with_fewer_pieces_than_came) {
  LyingServer server;
  server.say(message_of({Kind::piece, server.told.from, kLiar, 0, 65'536}, 5));
  server.answer(message_of({Kind::answer, server.told.from, kLiar, 0, 0}));
  EXPECT_EQ(server.pair.client_streams->counters().repeated.get(), 1U);
  server.expect_broken();
}

TEST(LyingServer, ends_as_only_the_client_may) {
  LyingServer server;
  server.say(message_of({Kind::end, server.told.from, kLiar, 0, 65'536}));
  server.expect_broken();
}

TEST(LyingServer, changes_its_number) {
  LyingServer server;
  server.say(message_of({Kind::credit, server.told.from, kLiar, 0, 65'536}));
  server.answer(message_of({Kind::answer, server.told.from, kLiar + 1, 0, 0}));
  server.expect_broken();
}

TEST(LyingServer, never_sends_the_pieces_that_its_answer_counts) {
  LyingServer server;
  server.say(message_of({Kind::piece, server.told.from, kLiar, 1, 65'536}, 5));
  server.answer(message_of({Kind::answer, server.told.from, kLiar, 2, 0}));
  EXPECT_FALSE(server.stream.ended());
  EXPECT_TRUE(server.pair.net.run([&] { return server.stream.ended(); }));
  EXPECT_EQ(server.stream.wait().status, MessageStatus::deadline);
  server.stream.close();
  server.pair.net.run_for(Nanos{10 * kMs});
  EXPECT_TRUE(server.pair.client_has_nothing());
}

TEST(LyingServer, leaves_before_the_pieces_that_its_answer_counts) {
  for (const bool forgotten : {false, true}) {
    LyingServer server;
    server.answer(message_of({Kind::answer, server.told.from, kLiar, 2, 0}));
    EXPECT_FALSE(server.stream.ended());
    message::Endpoint& endpoint = server.pair.client.endpoint;
    EXPECT_EQ(forgotten ? endpoint.forget(server.pair.session, server.pair.net.now)
                        : server.pair.server.endpoint.close(server.pair.there, server.pair.net.now),
              message::CallStatus::ok);
    server.pair.net.run_for(Nanos{10 * kMs});
    EXPECT_TRUE(server.stream.ended());
    EXPECT_EQ(server.stream.wait().status, MessageStatus::peer_lost);
  }
}

TEST(LyingServer, sends_pieces_beyond_credit) {
  LyingServer server;
  for (std::uint32_t number = 0; number < 5; ++number)
    server.say(message_of({Kind::piece, server.told.from, kLiar, number, 65'536}, 16'000));
  EXPECT_EQ(server.pair.client_streams->counters().beyond_credit.get(), 1U);
  server.expect_broken();
}

}  // namespace
}  // namespace warpline::rpc
