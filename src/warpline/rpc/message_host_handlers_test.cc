// SPDX-License-Identifier: Apache-2.0
// What handlers and other callbacks of a host may do, and how a host ends that has some.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/message_host.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/rpc/pool/server_pool.h"

namespace warpline::rpc {
namespace {

constexpr Nanos kLongEnough{30'000'000'000};

SocketAddress address_of(const MessageHost& host) { return {Ipv4Address{{127, 0, 0, 1}}, host.port()}; }

message::SessionId connect(MessageHost& from, const MessageHost& to) {
  auto opened = from.connect(address_of(to));
  EXPECT_TRUE(opened.ok());
  return *opened;
}

MessageHost open_with(const MessageHost::Settings& changed) {
  MessageHost::Settings settings = changed;
  settings.local = kAnyPort;
  settings.endpoint.max_sessions = std::min(settings.endpoint.max_sessions, 16U);
  settings.endpoint.peer_timeout = settings.endpoint.connect_timeout = kLongEnough;
  auto host = MessageHost::open(settings);
  EXPECT_TRUE(host.ok()) << host.error().message();
  return std::move(host).value();
}

/// Runs the loop of a host on a thread.
class Running {
 public:
  explicit Running(MessageHost& host) : host_(host), thread_([this] { host_.run(); }) {}
  ~Running() {
    host_.stop();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  MessageHost& host_;
  std::thread thread_;
};

struct Told {
  std::atomic<bool> began{false};
  std::atomic<int> ended{0};
  std::atomic<message::MessageStatus> status{message::MessageStatus::ok};
};

/// Makes a call that is never answered, and then others, as long as the host or pool takes any.
template <typename Asker>
void call_until_the_end(Asker& asker, message::SessionId session, Told& told) {
  for (PendingCall call; call.submit(asker, {.session = session}) == message::CallStatus::ok;) {
    if (!told.began.exchange(true)) told.began.notify_all();
    told.status = call.wait().status;
    ++told.ended;
  }
}

TEST(MessageHostEnd, EndsTheCallsThatItsHandlersWaitFor) {
  const MessageHost backend = open_host();  // whose loop does not run: it answers nothing
  std::optional<MessageHost> client(open_host());
  std::optional<MessageHost> middle(open_host());
  const message::SessionId asked = connect(*middle, backend);
  Told told;
  ASSERT_TRUE(middle
                  ->handle_on_threads({.threads = 2},
                                      [&](HandledRequest&, unsigned) { call_until_the_end(*middle, asked, told); })
                  .ok());
  PendingCall call;
  ASSERT_EQ(call.submit(*client, {.session = connect(*client, *middle)}), message::CallStatus::ok);
  {
    const Running client_runs(*client);
    const Running middle_runs(*middle);
    told.began.wait(false);
  }
  middle.reset();
  client.reset();
  EXPECT_TRUE(call.done());
  EXPECT_GE(told.ended, 1);
  EXPECT_EQ(told.status, message::MessageStatus::cancelled);
}

TEST(MessageHostEnd, EndsTheCallsThatHandlersOfStreamsWaitFor) {
  MessageHost::Settings settings;
  settings.streams.streams = 4;
  settings.endpoint.max_messages = 4096;
  const MessageHost backend = open_host();
  MessageHost client = open_with(settings);
  Told told;
  std::optional<MessageHost> middle(open_with(settings));
  const message::SessionId asked = connect(*middle, backend);
  ASSERT_TRUE(
      middle->take_streams_on_threads(2, [&](CallStream&, unsigned) { call_until_the_end(*middle, asked, told); })
          .ok());
  OpenedStream stream = client.open_stream({.session = connect(client, *middle)});
  ASSERT_EQ(stream.status, message::CallStatus::ok);
  {
    const Running client_runs(client);
    const Running middle_runs(*middle);
    told.began.wait(false);
  }
  middle.reset();
  EXPECT_EQ(told.status, message::MessageStatus::cancelled);
}

TEST(MessageHostEnd, EndsHandlersThatWaitForAPoolOfTheirHostBeforeThePool) {
  const MessageHost backend = open_host();
  std::optional<MessageHost> client(open_host());
  MessageHost middle = open_host();
  auto pool = ServerPool::make(middle, std::array{address_of(backend)}, {});
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  Told told;
  ASSERT_TRUE(
      middle.handle_on_threads({.threads = 2}, [&](HandledRequest&, unsigned) { call_until_the_end(**pool, {}, told); })
          .ok());
  PendingCall call;
  ASSERT_EQ(call.submit(*client, {.session = connect(*client, middle)}), message::CallStatus::ok);
  {
    const Running client_runs(*client);
    const Running middle_runs(middle);
    told.began.wait(false);
  }
  MessageHost* const ends[] = {&middle};
  MessageHost::end_handlers(ends);
  EXPECT_GE(told.ended, 1);
  EXPECT_EQ(told.status, message::MessageStatus::cancelled);
  pool->reset();
  client.reset();
}

TEST(CompletionQueueEnd, WaitsForCallsAndDropsTheEndsThatWereNotTaken) {
  MessageHost server = open_host();
  server.handle(echo);
  MessageHost client = open_host();
  const message::SessionId session = connect(client, server);
  auto queue = CompletionQueue::make(4);
  ASSERT_TRUE(queue.ok());
  for (std::uint64_t tag = 0; tag < 4; ++tag)
    ASSERT_EQ((*queue)->submit(client, {.session = session}, tag).status, message::CallStatus::ok);
  const Running serves(server);
  const Running calls(client);
  Completion first;
  while ((*queue)->poll({&first, 1}) == 0) (*queue)->wait();
  EXPECT_EQ(first.result.status, message::MessageStatus::ok);
  queue->reset();
  EXPECT_EQ(client.endpoint().counters().requests.get(), 4U);
}

TEST(MessageHostEnd, ClosesTheSessionsThatItOpened) {
  MessageHost server = open_host();
  server.handle(echo);
  std::vector<message::LossReason> lost;
  server.listen([&](const message::MessageEvent& event) {
    if (event.kind != message::EventKind::lost) return;
    lost.push_back(event.reason);
    if (lost.size() == 3) server.stop();
  });
  std::thread serves([&] { server.run(); });
  {
    MessageHost client = open_host();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(client.ask(connect(client, server), "hello").ok());
  }
  serves.join();
  EXPECT_EQ(lost, std::vector(3, message::LossReason::closed));
}

TEST(MessageHostAsk, SaysWhyThereIsNoSession) {
  MessageHost::Settings settings;
  settings.endpoint.max_sessions = 1;
  MessageHost server = open_with(settings);
  server.handle(echo);
  const Running serves(server);
  MessageHost first = open_host();
  EXPECT_TRUE(first.ask(connect(first, server), "hello").ok());
  MessageHost second = open_host();
  const auto answer = second.ask(connect(second, server), "hello", kLongEnough);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::peer);
  EXPECT_NE(answer.error().message().find("peer_full"), std::string::npos) << answer.error().message();
}

TEST(MessageHostHandler, CannotRunTheLoopThatItIsCalledBy) {
  MessageHost backend = open_host();
  backend.handle(echo);
  MessageHost middle = open_host();
  const message::SessionId asked = connect(middle, backend);
  int depth = 0;
  int deepest = 0;
  std::vector<ErrorKind> kinds;
  middle.handle([&](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
    deepest = std::max(deepest, ++depth);
    std::copy(request.begin(), request.end(), room.begin());
    const auto answer = middle.ask(asked, "what is it?");
    if (!answer.ok()) kinds.push_back(answer.error().kind);
    EXPECT_TRUE(middle.turn());
    middle.run();
    EXPECT_TRUE(middle.in_callback());
    PendingCall never;  // which nobody would end
    EXPECT_EQ(never.submit(middle, {.session = asked}), message::CallStatus::not_allowed);
    --depth;
    return std::optional(request.size());
  });
  MessageHost client = open_host();
  const message::SessionId session = connect(client, middle);
  std::deque<std::pair<std::string, std::array<std::uint8_t, 16>>> asks;
  std::deque<PendingCall> calls(8);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto& [text, room] = asks.emplace_back("client " + std::to_string(i), std::array<std::uint8_t, 16>{});
    ASSERT_EQ(calls[i].submit(client, {.session = session, .message = bytes_of(text), .response = {room.data(), 16}}),
              message::CallStatus::ok);
  }
  {
    const Running backend_runs(backend);
    const Running middle_runs(middle);
    const Running client_runs(client);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const CallResult& result = calls[i].wait();
      EXPECT_EQ(std::string(result.data, result.data + result.length), asks[i].first);
    }
  }
  EXPECT_FALSE(middle.in_callback());
  EXPECT_EQ(deepest, 1);
  EXPECT_EQ(kinds, std::vector(8, ErrorKind::usage));
}

TEST(MessageHostHandler, MayTakeItsOwnPlace) {
  MessageHost server = open_host();
  server.handle([&server](auto request, auto room) {
    server.handle([](auto, auto) { return std::optional<std::size_t>(0); });
    return echo(request, room);
  });
  const Running serves(server);
  MessageHost client = open_host();
  const message::SessionId session = connect(client, server);
  EXPECT_EQ(client.ask(session, "first").value(), "first");
  EXPECT_EQ(client.ask(session, "second").value(), "");
}

/// A part that takes another one, and itself, out of the loop while the loop looks at all of them.
TEST(MessageHostParts, MayLeaveInACallback) {
  struct Part final : LoopPart {
    bool handle(message::Endpoint&, const message::MessageEvent&, Nanos) override { return false; }
    bool advance(message::Endpoint&, bool, Nanos) override {
      ++advanced;
      if (other != nullptr) host->leave(*std::exchange(other, nullptr));
      return false;
    }
    [[nodiscard]] Nanos next_deadline() const override { return message::kNever; }
    void leave(message::Endpoint&, Nanos) override { ++left; }
    MessageHost* host = nullptr;
    Part* other = nullptr;
    int advanced = 0;
    int left = 0;
  };
  MessageHost host = open_host();
  std::array<Part, 3> parts;
  for (Part& part : parts) {
    part.host = &host;
    host.join(part);
  }
  parts[0].other = &parts[1];
  ASSERT_TRUE(host.turn());
  EXPECT_EQ(parts[1].advanced, 0);
  EXPECT_EQ(parts[1].left, 1);
  EXPECT_GE(parts[2].advanced, 1);
  ASSERT_TRUE(host.turn());
  EXPECT_EQ(parts[1].advanced, 0);
}

/// 256 answers of 64 KiB, for which there is 1 MiB of memory: a request that was handled is answered.
TEST(MessageHostHandler, IsNotCalledInVainWhileMemoryIsShort) {
  MessageHost::Settings settings;
  settings.endpoint.receive_bytes = 1 << 20;
  MessageHost server = open_with(settings);
  std::atomic<std::uint32_t> handled{0};
  server.handle([&](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
    std::fill(room.begin(), room.end(), request[0]);
    ++handled;
    return std::optional(room.size());
  });
  MessageHost client = open_host();
  constexpr std::size_t kCalls = 256;
  std::array<message::SessionId, 4> sessions;
  for (message::SessionId& session : sessions) session = connect(client, server);
  std::deque<PendingCall> calls(kCalls);
  std::vector<std::vector<std::uint8_t>> rooms(kCalls, std::vector<std::uint8_t>(settings.answer_bytes));
  for (std::size_t i = 0; i < kCalls; ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    ASSERT_EQ(calls[i].submit(client, {.session = sessions[i % sessions.size()],
                                       .message = {&byte, 1},
                                       .response = {rooms[i].data(), settings.answer_bytes}}),
              message::CallStatus::ok);
  }
  {
    const Running serves(server);
    const Running asks(client);
    for (std::size_t i = 0; i < kCalls; ++i) {
      const CallResult& result = calls[i].wait();
      EXPECT_EQ(result.status, message::MessageStatus::ok) << i;
      EXPECT_EQ(result.length, settings.answer_bytes);
      EXPECT_EQ(std::ranges::count(rooms[i], static_cast<std::uint8_t>(i)), settings.answer_bytes);
    }
  }
  EXPECT_EQ(handled, kCalls);
}

TEST(MessageHostHandler, DeclinesWhatItsAnswerIsTooLongFor) {
  MessageHost::Settings settings;
  settings.answer_bytes = 1000;
  MessageHost server = open_with(settings);
  server.handle([](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
    return std::optional(room.size() + request[0]);
  });
  MessageHost client = open_host();
  const message::SessionId session = connect(client, server);
  const Running serves(server);
  const Running asks(client);
  std::array<std::uint8_t, 2000> room;
  for (const std::uint8_t more : {std::uint8_t{0}, std::uint8_t{1}}) {
    PendingCall call;
    ASSERT_EQ(call.submit(client, {.session = session, .message = {&more, 1}, .response = {room.data(), room.size()}}),
              message::CallStatus::ok);
    const CallResult& result = call.wait();
    EXPECT_EQ(result.status, more == 0 ? message::MessageStatus::ok : message::MessageStatus::refused);
    if (more != 0) {
      EXPECT_EQ(result.code, static_cast<std::uint16_t>(message::RefusalCode::declined));
    }
  }
}

/// "As long as it takes" after any time is not a time in the past.
TEST(MessageHostDrain, WaitsWithoutALimitForWhatIsHandled) {
  MessageHost server = open_host();
  std::atomic<bool> began{false};
  std::atomic<bool> goes_on{false};
  ASSERT_TRUE(server
                  .handle_on_threads({},
                                     [&](HandledRequest& request, unsigned) {
                                       began = true;
                                       began.notify_all();
                                       goes_on.wait(false);
                                       request.answer = bytes_of("done");
                                     })
                  .ok());
  MessageHost client = open_host();
  PendingCall call;
  std::array<std::uint8_t, 8> room;
  ASSERT_EQ(call.submit(client, {.session = connect(client, server), .response = {room.data(), room.size()}}),
            message::CallStatus::ok);
  std::thread serves([&] { server.run(); });
  {
    const Running asks(client);
    began.wait(false);
    server.drain(message::kNever);
    // The host's thread has drained by the time that it runs a task that comes behind.
    std::atomic<bool> looked{false};
    ASSERT_TRUE(server.post(
        [](void* context) {
          static_cast<std::atomic<bool>*>(context)->store(true);
          static_cast<std::atomic<bool>*>(context)->notify_all();
        },
        &looked));
    looked.wait(false);
    goes_on = true;
    goes_on.notify_all();
    const CallResult& result = call.wait();
    EXPECT_EQ(result.status, message::MessageStatus::ok);
    EXPECT_EQ(result.length, 4U);
  }
  server.stop();  // the client's session lasts as long as that
  serves.join();
}

}  // namespace
}  // namespace warpline::rpc
