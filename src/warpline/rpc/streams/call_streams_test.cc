// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/streams/call_streams.h"

#include <gtest/gtest.h>

#include <string_view>

#include "warpline/rpc/streams/streams_testing.h"

namespace warpline::rpc {
namespace {

using message::kMs;
using message::MessageStatus;
using message::Reach;

std::span<const std::uint8_t> text(std::string_view words) {
  return {reinterpret_cast<const std::uint8_t*>(words.data()), words.size()};
}

/// Both ends write and read at once until each has all of the other's, and the answer has come.
void exchange(StreamPair& pair, std::uint32_t up, std::uint32_t down, std::uint64_t seed) {
  CallStream stream = pair.open({.request = text("begin"), .code = 7});
  PieceWriter asks{seed, up};
  PieceWriter answers{seed + 1, down};
  PieceReader asked{seed};
  PieceReader answered{seed + 1};
  bool finished = false;
  const bool done = pair.net.run(
      [&] {
        if (asks.write(stream)) stream.end_writing();
        answered.take(stream);
        if (pair.taken.empty()) return false;
        CallStream& other = pair.taken.front();
        asked.take(other);
        if (answers.write(other) && asked.ended && !finished) finished = other.finish(9, text("end"));
        return answered.ended;
      },
      Nanos{120'000 * kMs});
  ASSERT_TRUE(done) << "up " << asked.read << " of " << up << ", down " << answered.read << " of " << down;
  EXPECT_EQ(asked.read, up);
  EXPECT_EQ(answered.read, down);
  ASSERT_TRUE(stream.ended());
  const CallResult& result = stream.wait();
  EXPECT_EQ(result.status, MessageStatus::ok);
  EXPECT_EQ(result.code, 9);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(result.data), result.length), "end");
  stream.close();
  pair.taken.clear();
  EXPECT_TRUE(pair.all_back());
}

TEST(CallStreams, carry_pieces_both_ways_at_once_whatever_the_network_does) {
  for (std::uint64_t seed = 1; seed <= 35; ++seed) {
    SCOPED_TRACE(seed);
    const auto bad = static_cast<std::uint32_t>(seed % 4 * 30'000);
    const message::Impairment faults{.loss = bad, .duplicate = bad, .reorder = 5 * bad, .corrupt = bad / 3};
    message::EndpointConfig config = with_streams();
    if (seed % 7 == 1) config.reliability = message::Reliability::go_back_n;
    if (seed % 7 == 2) config.grants = 20'000;
    CallStreamSettings settings{.streams = 8, .window = 65'536};
    if (seed % 7 >= 3) {  // the least that there may be
      settings.streams = 1;
      config.receive_bytes = settings.most_bytes() + 65'536;
      config.max_messages = settings.most_pieces() + 64;
    }
    StreamPair pair(faults, seed, {.ordered = seed % 2 == 0}, config, settings);
    exchange(pair, seed % 3 == 0 ? 0 : 200, seed % 5 == 0 ? 0 : 300, seed);
    exchange(pair, 40, 60, seed + 100);  // in the places of the first
    EXPECT_EQ(pair.client_streams->counters().broken.get() + pair.server_streams->counters().broken.get(), 0U);
  }
}

TEST(CallStreams, carry_the_request_and_what_it_says) {
  StreamPair pair;
  const std::vector<std::uint8_t> metadata{1, 2, 3};
  const std::vector<std::uint8_t> request = message::pattern(kMaxPieceBytes, 5);
  const Nanos before = pair.net.now;
  CallStream stream =
      pair.open_taken({.request = request, .code = 5, .metadata = metadata, .patience = Nanos{1000 * kMs}});
  CallStream& other = pair.taken.front();
  EXPECT_EQ(other.session(), pair.there);
  EXPECT_EQ(other.code(), 5);
  EXPECT_TRUE(std::ranges::equal(other.request(), request));
  EXPECT_TRUE(std::ranges::equal(other.metadata(), metadata));
  EXPECT_GE(other.deadline().value, before.value + 1000 * kMs);
  EXPECT_LE(other.deadline().value, pair.net.now.value + 1000 * kMs);
  const std::vector<std::uint8_t> longest(kMaxAnswerBytes + 1);
  EXPECT_FALSE(other.finish(0, longest));
  EXPECT_TRUE(other.finish(1, std::span(longest).first(kMaxAnswerBytes)));
  EXPECT_TRUE(pair.net.run([&] { return stream.ended(); }));
  EXPECT_EQ(stream.wait().length, kMaxAnswerBytes);
  EXPECT_FALSE(stream.try_write(text("late")));
}

/// A handler may be reading them when its peer gives up: the endpoint's memory is others' then.
TEST(CallStreams, request_and_metadata_stay_when_the_opener_gives_up) {
  StreamPair pair;
  for (const std::uint32_t length : {12U, kMaxPieceBytes}) {
    pair.taken.clear();
    const std::vector<std::uint8_t> request = message::pattern(length, 5);
    const std::vector<std::uint8_t> metadata = message::pattern(message::kMaxMetadataBytes, 6);
    {
      const CallStream stream = pair.open_taken({.request = request, .metadata = metadata});
    }
    EXPECT_TRUE(pair.net.run([&] { return pair.taken.front().ended(); }));
    const std::vector<std::uint8_t> other(kMaxPieceBytes);
    for (int i = 0; i < 4; ++i) {
      const CallStream next = pair.open(
          {.request = std::span(other).first(length), .metadata = std::span(other).first(message::kMaxMetadataBytes)});
      pair.net.run_for(Nanos{10 * kMs});
    }
    EXPECT_TRUE(std::ranges::equal(pair.taken.front().request(), request));
    EXPECT_TRUE(std::ranges::equal(pair.taken.front().metadata(), metadata));
  }
}

TEST(CallStreams, a_reader_that_does_not_read_stops_the_writer_and_nobody_else) {
  constexpr std::uint32_t kLength = 5000;
  StreamPair pair;
  CallStream stream = pair.open_taken();
  CallStream& other = pair.taken.front();
  const std::vector<std::uint8_t> piece = message::pattern(kLength, 1);
  std::uint32_t written = 0;
  const auto write = [&] {
    while (other.try_write(piece)) ++written;
  };
  pair.net.run([&] { return write(), false; }, Nanos{1000 * kMs});
  const std::uint32_t stopped = written;
  pair.net.run([&] { return write(), false; }, Nanos{5000 * kMs});
  EXPECT_EQ(written, stopped);
  const std::uint64_t arrived = pair.client_streams->counters().pieces_in.get();
  EXPECT_LE(arrived * (kLength + 20 + kPieceCost), 65'536U);
  EXPECT_GE(arrived * (kLength + 20 + kPieceCost), 65'536U - 6100);
  EXPECT_LE((written - arrived) * kLength, 65'536U);

  // Requests of the session pass.
  std::vector<std::uint8_t> room(100);
  const message::Submitted asked =
      pair.client.endpoint.request(pair.session, {piece.data(), 100}, {room.data(), 100}, {.context = 5}, pair.net.now);
  ASSERT_EQ(asked.status, message::CallStatus::ok);
  const auto requested = [&] { return message::Two::count(pair.server, message::EventKind::request) != 0; };
  EXPECT_TRUE(pair.net.run(requested));

  // And it goes on as far as is read.
  std::uint32_t read = 0;
  const auto take = [&] {
    std::span<const std::uint8_t> found;
    while (stream.try_read(found) == StreamRead::piece) {
      EXPECT_TRUE(std::ranges::equal(found, piece));
      ++read;
    }
    write();
    return read > 200;
  };
  EXPECT_TRUE(pair.net.run(take));
}

TEST(CallStreams, many_small_pieces_are_bounded_too) {
  StreamPair pair;
  CallStream stream = pair.open_taken();
  std::uint32_t written = 0;
  const auto write = [&] {
    while (stream.try_write(text("x"))) ++written;
    return false;
  };
  pair.net.run(write, Nanos{1000 * kMs});
  EXPECT_EQ(pair.server_streams->counters().pieces_in.get(), 65'536U / (kPieceCost + 21));
  EXPECT_LE(written, 65'536U / (kPieceCost + 21) + 300);
}

TEST(CallStreams, pauses_and_silence_end_none_that_the_session_survives) {
  for (const bool client_pauses : {true, false}) {
    StreamPair pair({.loss = 10'000}, 11);
    CallStream stream = pair.open_taken();
    CallStream& other = pair.taken.front();
    PieceWriter writer{4, 400};
    PieceReader reader{4};
    std::uint32_t turns = 0;
    message::Loopback::Host& pausing = client_pauses ? pair.client : pair.server;
    const auto run = [&] {
      if (writer.write(other)) (void)other.finish(0);
      reader.take(stream);
      if (++turns % 300 == 0) pausing.away = true;
      return reader.ended || pausing.away;
    };
    for (int i = 0; i < 200 && !reader.ended; ++i) {
      pair.net.run(run);
      if (!pausing.away) continue;
      pair.net.run_for(Nanos{3000 * kMs});
      pair.net.come_back(pausing);
    }
    EXPECT_EQ(reader.read, 400U);
    EXPECT_EQ(stream.wait().status, MessageStatus::ok);
  }
}

TEST(CallStreams, a_deadline_ends_both_ends) {
  StreamPair pair;
  CallStream stream = pair.open_taken({.patience = Nanos{50 * kMs}});
  CallStream& other = pair.taken.front();
  EXPECT_TRUE(other.try_write(text("some")));
  EXPECT_TRUE(pair.net.run([&] { return stream.ended() && other.ended(); }));
  EXPECT_EQ(stream.wait().status, MessageStatus::deadline);
  EXPECT_EQ(other.wait().status, MessageStatus::deadline);
  std::span<const std::uint8_t> piece;
  EXPECT_EQ(stream.try_read(piece), StreamRead::piece);  // what had come may be read
  EXPECT_EQ(stream.try_read(piece), StreamRead::end);
  EXPECT_EQ(other.try_read(piece), StreamRead::end);
  EXPECT_FALSE(other.try_write(text("more")));
  EXPECT_TRUE(other.finish(0));  // goes nowhere
  stream.close();
  pair.taken.clear();
  EXPECT_TRUE(pair.all_back());
}

TEST(CallStreams, one_that_finds_no_slot_ends_at_its_deadline) {
  message::EndpointConfig config = with_streams();
  config.receive_window = 2 * 65'536;
  StreamPair pair({}, 3, {}, config);
  const CallStream first = pair.open_taken();  // it fills half of the session's window
  CallStream second = pair.open({.patience = Nanos{20 * kMs}});
  EXPECT_TRUE(pair.net.run([&] { return second.ended(); }));
  EXPECT_EQ(second.wait().status, MessageStatus::deadline);
  EXPECT_EQ(second.wait().reach, Reach::never_sent);
  std::vector<CallStream> others;
  for (int i = 0; i < 6; ++i) others.push_back(pair.open());
  EXPECT_EQ(pair.client_streams->open({.session = pair.session}, pair.net.now).status, message::CallStatus::no_memory);
}

TEST(CallStreams, more_than_fill_a_session_wait_or_are_declined) {
  message::EndpointConfig config = with_streams();
  config.receive_window = 4 * 65'536;
  StreamPair pair({}, 3, {}, config);
  std::vector<CallStream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(pair.open());
  pair.net.run_for(Nanos{50 * kMs});
  EXPECT_EQ(pair.taken.size(), 2U);
  EXPECT_TRUE(pair.taken.front().finish(0));
  EXPECT_TRUE(pair.net.run([&] { return pair.taken.size() == 3; }));
}

TEST(CallStreams, who_opened_it_may_cancel_it) {
  StreamPair pair;
  CallStream stream = pair.open_taken();
  CallStream& other = pair.taken.front();
  EXPECT_TRUE(stream.try_write(text("some")));
  stream.cancel();
  EXPECT_TRUE(pair.net.run([&] { return stream.ended() && other.ended(); }));
  EXPECT_EQ(stream.wait().status, MessageStatus::cancelled);
  EXPECT_EQ(other.wait().status, MessageStatus::cancelled);
  // Before it ever left.
  CallStream unsent = pair.open();
  unsent.cancel();
  EXPECT_TRUE(pair.net.run([&] { return unsent.ended(); }));
  EXPECT_EQ(unsent.wait().reach, Reach::never_sent);
}

TEST(CallStreams, who_took_it_may_decline_it) {
  StreamPair pair;
  for (const bool by_cancel : {true, false}) {
    CallStream stream = pair.open_taken();
    EXPECT_TRUE(pair.taken.front().try_write(text("some")));
    if (by_cancel) pair.taken.front().cancel();
    pair.taken.clear();
    EXPECT_TRUE(pair.net.run([&] { return stream.ended(); }));
    EXPECT_EQ(stream.wait().status, MessageStatus::refused);
    EXPECT_EQ(stream.wait().code, static_cast<std::uint16_t>(message::RefusalCode::declined));
    stream.close();
  }
  EXPECT_TRUE(pair.all_back());
}

TEST(CallStreams, nobody_takes_any_where_nobody_said_so) {
  StreamPair pair;
  pair.server_streams->take_by({});
  CallStream stream = pair.open();
  EXPECT_TRUE(pair.net.run([&] { return stream.ended(); }));
  EXPECT_EQ(stream.wait().status, MessageStatus::refused);
  EXPECT_EQ(pair.server_streams->counters().refused.get(), 1U);
}

TEST(CallStreams, a_peer_that_dies_ends_them_as_lost) {
  for (const bool client_dies : {true, false}) {
    StreamPair pair;
    CallStream stream = pair.open_taken();
    CallStream& other = pair.taken.front();
    (client_dies ? pair.client : pair.server).dead = true;
    CallStream& left = client_dies ? other : stream;
    EXPECT_TRUE(left.try_write(text("anybody there")));
    EXPECT_TRUE(pair.net.run([&] { return left.ended(); }, Nanos{100'000 * kMs}));
    EXPECT_EQ(left.wait().status, MessageStatus::peer_lost);
    std::span<const std::uint8_t> piece;
    EXPECT_EQ(left.try_read(piece), StreamRead::end);
  }
}

TEST(CallStreams, closing_the_session_ends_them) {
  StreamPair pair;
  CallStream stream = pair.open_taken();
  EXPECT_TRUE(pair.taken.front().try_write(text("some")));
  pair.net.run_for(Nanos{kMs});
  EXPECT_EQ(pair.client.endpoint.close(pair.session, pair.net.now), message::CallStatus::ok);
  EXPECT_TRUE(pair.net.run([&] { return stream.ended() && pair.taken.front().ended(); }));
  EXPECT_EQ(stream.wait().status, MessageStatus::peer_lost);
  EXPECT_EQ(pair.taken.front().wait().status, MessageStatus::peer_lost);
  std::span<const std::uint8_t> piece;
  EXPECT_EQ(stream.try_read(piece), StreamRead::piece);
  EXPECT_TRUE(std::ranges::equal(piece, text("some")));
}

TEST(CallStreams, end_with_their_host) {
  StreamPair pair;
  CallStream stream = pair.open_taken();
  pair.client_streams->end_all(pair.client.endpoint, pair.net.now);
  ASSERT_TRUE(stream.ended());
  EXPECT_EQ(stream.wait().status, MessageStatus::cancelled);
  EXPECT_EQ(pair.client_streams->open({.session = pair.session}, pair.net.now).status, message::CallStatus::no_memory);
}

TEST(CallStreams, a_session_that_is_not_there_ends_them_unsent) {
  StreamPair pair;
  for (const message::SessionId& nobody : {message::SessionId{}, message::SessionId{0, 77}, message::SessionId{3, 0}}) {
    OpenedStream opened = pair.client_streams->open({.session = nobody}, pair.net.now);
    ASSERT_EQ(opened.status, message::CallStatus::ok);
    EXPECT_TRUE(pair.net.run([&] { return opened.stream.ended(); }));
    EXPECT_EQ(opened.stream.wait().status, MessageStatus::peer_lost);
    EXPECT_EQ(opened.stream.wait().reach, Reach::never_sent);
  }
}

TEST(CallStreams, tell_whoever_listens) {
  StreamPair pair;
  int client_news = 0;
  int server_news = 0;
  const auto count = [](void* number) { ++*static_cast<int*>(number); };
  CallStream stream = pair.open_taken({.news = {count, &client_news}});
  pair.taken.front().listen({count, &server_news});
  EXPECT_TRUE(stream.try_write(text("some")));
  pair.net.run_for(Nanos{10 * kMs});
  EXPECT_EQ(server_news, 1);
  EXPECT_GE(client_news, 1);  // it left, and there is room again
  const int before = client_news;
  EXPECT_TRUE(pair.taken.front().finish(0));
  pair.net.run_for(Nanos{10 * kMs});
  EXPECT_GT(client_news, before);
}

TEST(CallStreams, settings_fit_each_other) {
  const message::EndpointConfig config = with_streams();
  EXPECT_FALSE(CallStreams::make({.streams = 0}, config, nullptr).ok());
  EXPECT_FALSE(CallStreams::make({.streams = 4097}, config, nullptr).ok());
  EXPECT_FALSE(CallStreams::make({.streams = 1, .window = 36'856}, config, nullptr).ok());
  EXPECT_FALSE(CallStreams::make({.streams = 1, .window = 36'865}, config, nullptr).ok());
  EXPECT_FALSE(CallStreams::make({.streams = 1, .window = 1 << 20}, config, nullptr).ok());
  message::EndpointConfig shorter = config;
  shorter.max_message_bytes = 16'000;
  EXPECT_FALSE(CallStreams::make({.streams = 1}, shorter, nullptr).ok());
  message::EndpointConfig smaller = config;
  smaller.receive_bytes = 1 << 20;
  EXPECT_TRUE(CallStreams::make({.streams = 1, .window = 131'072}, smaller, nullptr).ok());
  EXPECT_FALSE(CallStreams::make({.streams = 2, .window = 131'072}, smaller, nullptr).ok());
  smaller = config;
  smaller.max_messages = 474;
  EXPECT_FALSE(CallStreams::make({.streams = 1, .window = 131'072}, smaller, nullptr).ok());
  EXPECT_TRUE(CallStreams::make({.streams = 1, .window = kLeastStreamWindow}, config, nullptr).ok());
}

}  // namespace
}  // namespace warpline::rpc
