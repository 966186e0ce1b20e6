// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/call_observer.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/rpc/streams/streams_testing.h"

namespace warpline::rpc {
namespace {

/// Notes all that it sees. By one host's thread, read when that has ended.
class Notes final : public CallObserver {
 public:
  void call_began(const Call& call) override { began.push_back(call.code); }
  void call_ended(const Call& call, const CallResult& result, Nanos latency) override {
    ended.push_back({call.code, call.message.length, result.status, result.length});
    slow += latency.value > 0 ? 1 : 0;
  }
  void request_began(const ObservedRequest& request) override { requests.push_back(request.bytes); }
  void request_ended(const ObservedRequest& request, const ObservedAnswer& answer) override {
    answers.push_back({request.code, request.bytes, answer.outcome, answer.bytes});
    slow += answer.latency.value > 0 ? 1 : 0;
  }

  struct Ended {
    std::uint16_t code;
    std::uint32_t asked;
    message::MessageStatus status;
    std::uint32_t answered;
    bool operator==(const Ended&) const = default;
  };
  struct Answered {
    std::uint16_t code;
    std::uint32_t asked;
    ObservedAnswer::Outcome outcome;
    std::uint32_t bytes;
    bool operator==(const Answered&) const = default;
  };
  std::vector<std::uint16_t> began;
  std::vector<Ended> ended;
  std::vector<std::uint32_t> requests;
  std::vector<Answered> answers;
  int slow = 0;
};

/// Asks "go" with code 1, which is answered with twice as many bytes, and "no" with code 2, which is declined.
void ask_both(MessageHost& server, MessageHost& client) {
  const auto session = client.connect({Ipv4Address{{127, 0, 0, 1}}, server.port()});
  ASSERT_TRUE(session.ok());
  std::thread serving([&] { server.run(); });
  std::thread asking([&] { client.run(); });
  std::uint16_t code = 0;
  for (const std::string_view text : {"go", "no"}) {
    std::array<std::uint8_t, 16> room;
    PendingCall call;
    EXPECT_EQ(
        call.submit(
            client,
            {.session = *session, .message = bytes_of(text), .response = {room.data(), room.size()}, .code = ++code}),
        message::CallStatus::ok);
    (void)call.wait();
  }
  server.stop();
  client.stop();
  serving.join();
  asking.join();
}

using Outcome = ObservedAnswer::Outcome;
using Status = message::MessageStatus;
const std::vector<Notes::Ended> kEnded{{1, 2, Status::ok, 4}, {2, 2, Status::refused, 0}};
const std::vector<Notes::Answered> kAnswers{{1, 2, Outcome::answered, 4}, {2, 2, Outcome::declined, 0}};

TEST(CallObserver, SeesCallsAndTheirRequestsBeginAndEnd) {
  Notes of_server, of_client;
  MessageHost server = open_host();
  MessageHost client = open_host();
  server.observe(&of_server);
  client.observe(&of_client);
  server.handle([](std::span<const std::uint8_t> request, std::span<std::uint8_t>) {
    return request[0] == 'g' ? std::optional<std::size_t>(2 * request.size()) : std::nullopt;
  });
  ask_both(server, client);
  EXPECT_EQ(of_client.began, (std::vector<std::uint16_t>{1, 2}));
  EXPECT_EQ(of_client.ended, kEnded);
  EXPECT_EQ(of_client.slow, 2);
  EXPECT_TRUE(of_client.requests.empty());
  EXPECT_EQ(of_server.requests, (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ(of_server.answers, kAnswers);
  EXPECT_TRUE(of_server.began.empty());
}

TEST(CallObserver, SeesRequestsThatGoToThreads) {
  Notes of_server;
  MessageHost server = open_host();
  MessageHost client = open_host();
  server.observe(&of_server);
  ASSERT_TRUE(server
                  .handle_on_threads({},
                                     [](HandledRequest& request, unsigned) {
                                       request.declined = request.data.data[0] != 'g';
                                       request.answer = {request.room.data(), 2 * request.data.length};
                                     })
                  .ok());
  ask_both(server, client);
  EXPECT_EQ(of_server.requests, (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ(of_server.answers, kAnswers);
  EXPECT_EQ(of_server.slow, 2);
}

/// Notes calls in pieces.
class StreamNotes final : public CallObserver {
 public:
  void stream_began(const ObservedStream& stream) override { began.push_back(stream); }
  void stream_ended(const ObservedStream& stream, const ObservedStreamEnd& end) override {
    ended.emplace_back(stream.code, end);
    EXPECT_GE(end.latency.value, 0);
  }
  std::vector<ObservedStream> began;
  std::vector<std::pair<std::uint16_t, ObservedStreamEnd>> ended;
};

TEST(CallObserver, SeesCallsInPieces) {
  StreamPair pair;
  StreamNotes client;
  StreamNotes server;
  pair.client_streams->observe(&client);
  pair.server_streams->observe(&server);
  const std::vector<std::uint8_t> bytes(100);
  CallStream stream = pair.open_taken({.request = std::span(bytes).first(10), .code = 1});
  for (const std::size_t length : {0U, 30U, 70U}) EXPECT_TRUE(stream.try_write(std::span(bytes).first(length)));
  stream.end_writing();
  std::span<const std::uint8_t> piece;
  EXPECT_TRUE(pair.net.run([&] { return pair.taken.front().try_read(piece) == StreamRead::end; }));
  EXPECT_TRUE(pair.taken.front().try_write(bytes));
  EXPECT_TRUE(pair.taken.front().finish(5));
  EXPECT_TRUE(pair.net.run([&] { return stream.ended(); }));
  pair.taken.clear();
  stream = pair.open_taken({.code = 2});
  stream.cancel();
  EXPECT_TRUE(pair.net.run([&] { return stream.ended() && pair.taken.front().ended(); }));

  ASSERT_EQ(client.began.size(), 2U);
  EXPECT_EQ(client.began[0].session, pair.session);
  EXPECT_EQ(client.began[0].request_bytes, 10U);
  EXPECT_FALSE(client.began[0].served);
  ASSERT_EQ(server.began.size(), 2U);
  EXPECT_EQ(server.began[0].session, pair.there);
  EXPECT_EQ(server.began[0].request_bytes, 10U);
  EXPECT_TRUE(server.began[0].served);
  for (const StreamNotes* notes : {&client, &server}) {
    ASSERT_EQ(notes->ended.size(), 2U);
    const auto& [code, end] = notes->ended[0];
    EXPECT_EQ(code, 1);
    EXPECT_EQ(end.status, Status::ok);
    EXPECT_EQ(end.code, 5);
    const bool opened = notes == &client;
    EXPECT_EQ(end.pieces_out, opened ? 3U : 1U);
    EXPECT_EQ(end.bytes_out, 100U);
    EXPECT_EQ(end.pieces_in, opened ? 1U : 3U);
    EXPECT_EQ(end.bytes_in, 100U);
    EXPECT_EQ(notes->ended[1].first, 2);
    EXPECT_EQ(notes->ended[1].second.status, Status::cancelled);
  }
}

}  // namespace
}  // namespace warpline::rpc
