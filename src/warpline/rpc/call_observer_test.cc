// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/call_observer.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/pending_call.h"

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

}  // namespace
}  // namespace warpline::rpc
