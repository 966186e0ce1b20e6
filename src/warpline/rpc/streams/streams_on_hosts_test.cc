// SPDX-License-Identifier: Apache-2.0
// Calls in pieces between hosts on loopback, with threads at both ends.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/rpc/streams/streams_testing.h"

namespace warpline::rpc {
namespace {

using message::MessageStatus;

MessageHost open_with_streams(std::uint32_t streams = 16) {
  MessageHost::Settings settings;
  settings.local = kAnyPort;
  settings.endpoint.max_sessions = 16;
  settings.endpoint.max_messages = 4096;
  settings.endpoint.peer_timeout = settings.endpoint.connect_timeout = Nanos{30'000'000'000};
  settings.streams.streams = streams;
  auto host = MessageHost::open(settings);
  EXPECT_TRUE(host.ok()) << host.error().message();
  return std::move(host).value();
}

/// A server whose threads send back what they are sent, and a client; both loops run.
struct EchoHosts {
  explicit EchoHosts(unsigned threads) : server(open_with_streams()), client(open_with_streams()) {
    EXPECT_TRUE(server
                    .take_streams_on_threads(threads,
                                             [this](CallStream& stream, unsigned) {
                                               ++running;
                                               std::span<const std::uint8_t> piece;
                                               std::uint32_t pieces = 0;
                                               while (stream.read(piece) && stream.write(piece)) ++pieces;
                                               (void)stream.finish(static_cast<std::uint16_t>(pieces),
                                                                   stream.request());
                                               ++handled;
                                             })
                    .ok());
    server.handle(echo);
    session = client.connect({Ipv4Address{{127, 0, 0, 1}}, server.port()}).value();
    loops.emplace_back([this] { server.run(); });
    loops.emplace_back([this] { client.run(); });
  }
  ~EchoHosts() {
    server.stop();
    client.stop();
    for (std::thread& loop : loops) loop.join();
  }

  std::atomic<int> running = 0;
  std::atomic<int> handled = 0;
  MessageHost server;
  MessageHost client;
  message::SessionId session;
  std::vector<std::thread> loops;
};

TEST(StreamsOnHosts, go_up_and_down_at_once_from_many_threads) {
  EchoHosts hosts(3);
  constexpr int kThreads = 5;
  constexpr std::uint32_t kPieces = 300;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "call " + std::to_string(t);
      OpenedStream opened = hosts.client.open_stream(
          {.session = hosts.session,
           .request = std::span(reinterpret_cast<const std::uint8_t*>(name.data()), name.size())});
      ASSERT_EQ(opened.status, message::CallStatus::ok);
      CallStream& stream = opened.stream;
      std::thread writes([&] {
        for (std::uint32_t i = 0; i < kPieces; ++i) EXPECT_TRUE(stream.write(PieceWriter::piece(t, i, kMaxPieceBytes)));
        stream.end_writing();
      });
      std::span<const std::uint8_t> piece;
      std::uint32_t read = 0;
      while (stream.read(piece)) {
        EXPECT_TRUE(std::ranges::equal(piece, PieceWriter::piece(t, read, kMaxPieceBytes)));
        ++read;
      }
      writes.join();
      EXPECT_EQ(read, kPieces);
      const CallResult& result = stream.wait();
      EXPECT_EQ(result.status, MessageStatus::ok);
      EXPECT_EQ(result.code, kPieces);
      EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(result.data), result.length), name);
    });
  }
  // Requests beside them.
  for (int i = 0; i < 100; ++i) {
    std::uint8_t room[16];
    PendingCall call;
    ASSERT_EQ(call.submit(hosts.client, {.session = hosts.session, .message = bytes_of("ask"), .response = {room, 16}}),
              message::CallStatus::ok);
    EXPECT_EQ(call.wait().status, MessageStatus::ok);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hosts.handled.load(), kThreads);
}

TEST(StreamsOnHosts, one_write_of_any_length_goes_as_pieces) {
  EchoHosts hosts(1);
  OpenedStream opened = hosts.client.open_stream({.session = hosts.session});
  const std::vector<std::uint8_t> bytes = message::pattern(1'000'000, 4);
  std::thread writes([&] {
    EXPECT_TRUE(opened.stream.write(bytes));
    opened.stream.end_writing();
  });
  std::vector<std::uint8_t> read;
  std::span<const std::uint8_t> piece;
  while (opened.stream.read(piece)) read.insert(read.end(), piece.begin(), piece.end());
  writes.join();
  EXPECT_EQ(read, bytes);
}

TEST(StreamsOnHosts, cancelling_wakes_a_handler_that_sleeps) {
  EchoHosts hosts(1);
  OpenedStream opened = hosts.client.open_stream({.session = hosts.session});
  const std::uint8_t byte = 1;
  EXPECT_TRUE(opened.stream.write({&byte, 1}));
  std::span<const std::uint8_t> piece;
  EXPECT_TRUE(opened.stream.read(piece));  // the handler waits for the next
  opened.stream.cancel();
  EXPECT_EQ(opened.stream.wait().status, MessageStatus::cancelled);
  EXPECT_FALSE(opened.stream.read(piece));
  while (hosts.handled == 0) std::this_thread::yield();
}

TEST(StreamsOnHosts, a_host_that_ends_wakes_handlers_and_those_who_wait) {
  auto hosts = std::make_unique<EchoHosts>(2);
  std::vector<CallStream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(hosts->client.open_stream({.session = hosts->session}).stream);
  while (hosts->running != 2) std::this_thread::yield();  // and two wait for a thread
  streams.clear();
  hosts.reset();
}

TEST(StreamsOnHosts, nobody_sleeps_in_a_callback_of_the_host) {
  MessageHost server = open_with_streams();
  MessageHost client = open_with_streams();
  const auto never_sleeps = [](CallStream& stream) {
    std::span<const std::uint8_t> piece;
    EXPECT_FALSE(stream.read(piece));
    const std::vector<std::uint8_t> bytes(1 << 10);
    while (stream.write(bytes)) {  // until there is no room
    }
    EXPECT_EQ(stream.wait().status, MessageStatus::cancelled);
    EXPECT_FALSE(stream.ended());
  };
  ASSERT_TRUE(server.take_streams([&](CallStream stream) { never_sleeps(stream); }).ok());
  const message::SessionId session = client.connect({Ipv4Address{{127, 0, 0, 1}}, server.port()}).value();
  CallStream stream = client.open_stream({.session = session}).stream;
  std::thread serves([&] { server.run(); });
  std::thread calls([&] { client.run(); });
  EXPECT_EQ(stream.wait().status, MessageStatus::refused);
  stream.close();
  server.stop();
  client.stop();
  serves.join();
  calls.join();
}

TEST(StreamsOnHosts, are_none_unless_asked_for) {
  MessageHost host = open_host();
  EXPECT_FALSE(host.take_streams([](const CallStream&) {}).ok());
  EXPECT_FALSE(host.take_streams_on_threads(1, [](CallStream&, unsigned) {}).ok());
  EXPECT_EQ(host.open_stream({}).status, message::CallStatus::not_allowed);
  EXPECT_EQ(host.stream_counters(), nullptr);
  // A peer hears so.
  MessageHost client = open_with_streams();
  const auto session = client.connect({Ipv4Address{{127, 0, 0, 1}}, host.port()});
  OpenedStream opened = client.open_stream({.session = *session});
  std::thread loops([&] { host.run(); });
  std::thread loop([&] { client.run(); });
  const CallResult& result = opened.stream.wait();
  EXPECT_EQ(result.status, MessageStatus::refused);
  EXPECT_EQ(result.code, static_cast<std::uint16_t>(message::RefusalCode::no_streams));
  opened.stream.close();
  for (MessageHost* each : {&host, &client}) each->stop();
  loops.join();
  loop.join();
}

}  // namespace
}  // namespace warpline::rpc
