// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/handler_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <latch>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::rpc {
namespace {

constexpr Nanos kPatience{30'000'000'000};

/// A client, and a server whose requests are handled by threads.
class Handlers : public ::testing::Test {
 protected:
  struct Answer {
    message::MessageStatus status = message::MessageStatus::ok;
    std::uint16_t code = 0;
    std::vector<std::uint8_t> bytes;
  };

  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      auto socket = transport::UdpSocket::open({.local = {Ipv4Address{{127, 0, 0, 1}}, 0}});
      ASSERT_TRUE(socket.ok()) << socket.error().message();
      sockets_[i] = std::move(socket).value();
      message::EndpointConfig config;
      config.secret.emplace()[0] = static_cast<std::uint8_t>(i + 1);
      config.peer_timeout = config.connect_timeout = kPatience;
      config.max_messages = 2048;
      config.receive_bytes = 16 << 20;
      endpoints_[i].emplace(std::move(message::Endpoint::create(config, clock_.now())).value());
    }
    free_ = server().facts();
  }

  void start(const HandlerThreadsSetup& setup, HandlerThreads::Handler handler) {
    auto started = HandlerThreads::start(setup, std::move(handler));
    ASSERT_TRUE(started.ok()) << started.error().message();
    threads_ = std::move(started).value();
    room_ = setup.requests;
  }

  [[nodiscard]] message::Endpoint& client() { return *endpoints_[0]; }
  [[nodiscard]] message::Endpoint& server() { return *endpoints_[1]; }

  message::SessionId connect() {
    const message::PeerAddress there = message::peer_address(Ipv4Address{{127, 0, 0, 1}}, sockets_[1]->port());
    return client().connect(there, {}, clock_.now()).session;
  }

  message::MessageId ask(message::SessionId session, const std::vector<std::uint8_t>& bytes, std::uint16_t code = 0,
                         std::size_t most = 20'000) {
    questions_.push_back(bytes);
    rooms_.emplace_back(most);
    const message::Submitted submitted =
        client().request(session, {questions_.back().data(), static_cast<std::uint32_t>(bytes.size())},
                         {rooms_.back().data(), static_cast<std::uint32_t>(rooms_.back().size())},
                         {.context = rooms_.size() - 1, .code = code}, clock_.now());
    EXPECT_EQ(submitted.status, message::CallStatus::ok);
    return submitted.id;
  }

  /// A turn of both loops.
  void turn() {
    const Nanos now = clock_.now();
    std::array<message::MessageEvent, 16> events;
    transport::receive_into(client(), *sockets_[0], now);
    for (const message::MessageEvent& event : std::span(events).first(client().poll(events))) {
      if (event.kind != message::EventKind::response) continue;
      answers_[event.context] = {event.status, event.code, {}};
      if (event.status == message::MessageStatus::ok)
        answers_[event.context].bytes = {event.data, event.data + event.length};
    }
    transport::transmit_from(client(), *sockets_[0], clock_);

    transport::receive_into(server(), *sockets_[1], now);
    for (const message::MessageEvent& event : std::span(events).first(threads_->poll(server(), events, now))) {
      EXPECT_NE(event.kind, message::EventKind::request);
      EXPECT_NE(event.kind, message::EventKind::sent);
      withdrawn_ += event.kind == message::EventKind::withdrawn ? 1 : 0;
    }
    transport::transmit_from(server(), *sockets_[1], clock_);
  }

  [[nodiscard]] bool until(const std::function<bool()>& done) {
    const Nanos begun = clock_.now();
    while (!done() && clock_.now().value - begun.value < kPatience.value) turn();
    return done();
  }

  transport::NanoClock clock_;
  std::unique_ptr<transport::UdpSocket> sockets_[2];
  std::optional<message::Endpoint> endpoints_[2];
  std::unique_ptr<HandlerThreads> threads_;
  std::deque<std::vector<std::uint8_t>> questions_;
  std::deque<std::vector<std::uint8_t>> rooms_;
  std::map<std::uint64_t, Answer> answers_;
  std::uint32_t room_ = 0;
  int withdrawn_ = 0;
  message::EndpointFacts free_;
};

TEST_F(Handlers, AnswerEveryRequestOnceFromWhereverTheAnswerLies) {
  std::atomic<int> handled{0};
  start({.threads = 3, .requests = 32, .response_bytes = 10'000}, [&](HandledRequest& request, unsigned thread) {
    EXPECT_LT(thread, 3U);
    ++handled;
    request.answer_code = static_cast<std::uint16_t>(request.code + 1);
    if (request.code % 2 == 0) {  // part of the request
      request.answer = {request.data.data + request.data.length / 2, request.data.length / 2};
      return;
    }
    for (std::uint32_t i = 0; i < request.data.length; ++i) request.room[i] = request.data.data[i] ^ 0xff;
    request.answer = {request.room.data(), request.data.length};
  });
  const message::SessionId session = connect();
  constexpr std::size_t kRequests = 600;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const std::size_t length = i % 5 == 0 ? 9999 - i : i % 200;
    std::vector<std::uint8_t> bytes(length);
    for (std::size_t b = 0; b < length; ++b) bytes[b] = static_cast<std::uint8_t>(i + b);
    if (i % 40 == 39) {
      ASSERT_TRUE(until([&] { return answers_.size() == i; }));
    }
    ask(session, bytes, static_cast<std::uint16_t>(i));
  }
  ASSERT_TRUE(until([&] { return answers_.size() == kRequests && threads_->room() == room_; }));
  EXPECT_EQ(handled, static_cast<int>(kRequests));
  for (std::size_t i = 0; i < kRequests; ++i) {
    ASSERT_EQ(answers_[i].status, message::MessageStatus::ok);
    ASSERT_EQ(answers_[i].code, static_cast<std::uint16_t>(i + 1));
    std::vector<std::uint8_t> expected = questions_[i];
    if (i % 2 == 0) {
      const std::size_t half = expected.size() / 2;
      expected = std::vector<std::uint8_t>(expected.begin() + static_cast<std::ptrdiff_t>(half),
                                           expected.begin() + static_cast<std::ptrdiff_t>(2 * half));
    } else {
      for (std::uint8_t& byte : expected) byte ^= 0xff;
    }
    ASSERT_EQ(answers_[i].bytes, expected) << i;
  }
  EXPECT_EQ(threads_->in_hand(), 0U);
}

TEST_F(Handlers, AnswerMoreRequestsThanTheyHaveJobsFor) {
  constexpr std::uint32_t kLengths[] = {0,    1,      message::kInlineBytes, message::kInlineBytes + 1, 1000, 1473,
                                        9000, 1 << 16};
  constexpr std::size_t kSessions = 5;
  constexpr std::size_t kOutstanding = 64;
  constexpr std::size_t kRequests = 1000;
  start({.threads = 2, .requests = 16, .response_bytes = 1 << 16}, [&](HandledRequest& request, unsigned) {
    request.declined = request.code % 7 == 3;
    const std::uint32_t length = kLengths[request.code % std::size(kLengths)];
    std::fill_n(request.room.begin(), length, static_cast<std::uint8_t>(request.code));
    request.answer = {request.room.data(), length};
  });
  std::vector<message::SessionId> sessions;
  for (std::size_t i = 0; i < kSessions; ++i) sessions.push_back(connect());
  std::size_t asked = 0;
  ASSERT_TRUE(until([&] {
    for (; asked < kRequests && asked - answers_.size() < kSessions * kOutstanding; ++asked) {
      // A session whose own share is under way would have no slot for one more.
      const message::SessionId session = sessions[asked % kSessions];
      if (client().facts(session).messages == kOutstanding) break;
      ask(session, std::vector<std::uint8_t>(asked % 300), static_cast<std::uint16_t>(asked), 1 << 16);
    }
    return answers_.size() == kRequests && threads_->room() == room_;
  })) << answers_.size()
      << " answers, room for " << threads_->room();
  for (std::size_t i = 0; i < kRequests; ++i) {
    if (i % 7 == 3) {
      ASSERT_EQ(answers_[i].status, message::MessageStatus::refused) << i;
      continue;
    }
    ASSERT_EQ(answers_[i].status, message::MessageStatus::ok) << i;
    const std::vector<std::uint8_t> expected(kLengths[i % std::size(kLengths)], static_cast<std::uint8_t>(i));
    ASSERT_EQ(answers_[i].bytes, expected) << i;
  }
  EXPECT_EQ(threads_->in_hand(), 0U);
}

TEST_F(Handlers, RunSideBySide) {
  constexpr unsigned kThreads = 4;
  std::latch all(kThreads);
  start({.threads = kThreads, .requests = 8}, [&](HandledRequest&, unsigned) { all.arrive_and_wait(); });
  const message::SessionId session = connect();
  for (unsigned i = 0; i < kThreads; ++i) ask(session, {1});
  EXPECT_TRUE(until([&] { return answers_.size() == kThreads; }));
}

TEST_F(Handlers, ThatHaveTheirFillLeaveTheRestWithTheEndpoint) {
  std::atomic<bool> open{false};
  std::atomic<int> now_running{0};
  std::atomic<int> most{0};
  start({.threads = 2, .requests = 3}, [&](HandledRequest&, unsigned) {
    most = std::max(most.load(), ++now_running);
    open.wait(false);
    --now_running;
  });
  const message::SessionId session = connect();
  for (int i = 0; i < 30; ++i) ask(session, std::vector<std::uint8_t>(1000));
  ASSERT_TRUE(until([&] { return threads_->room() == 0 && server().counters().packets_in.get() > 30; }));
  for (int i = 0; i < 200; ++i) turn();
  EXPECT_EQ(server().counters().handled.get(), 3U);
  EXPECT_TRUE(answers_.empty());
  open = true;
  open.notify_all();
  EXPECT_TRUE(until([&] { return answers_.size() == 30 && threads_->room() == room_; }));
  EXPECT_LE(most, 2);
}

TEST_F(Handlers, LeaveJobsForOthersWhileOneAddressAcknowledgesNoAnswer) {
  start({.threads = 1, .requests = 16, .response_bytes = 1000},
        [](HandledRequest& request, unsigned) { request.answer = {request.room.data(), 1000}; });
  auto opened = transport::UdpSocket::open({.local = {Ipv4Address{{127, 0, 0, 2}}, 0}});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const std::unique_ptr<transport::UdpSocket> socket = std::move(opened).value();
  message::EndpointConfig config;
  config.peer_timeout = config.connect_timeout = kPatience;
  auto made = message::Endpoint::create(config, clock_.now());
  ASSERT_TRUE(made.ok()) << made.error().message();
  message::Endpoint deaf = std::move(made).value();
  const message::SessionId hostile =
      deaf.connect(message::peer_address(Ipv4Address{{127, 0, 0, 1}}, sockets_[1]->port()), {}, clock_.now()).session;
  ASSERT_TRUE(until([&] {
    transport::receive_into(deaf, *socket, clock_.now());
    transport::transmit_from(deaf, *socket, clock_);
    return deaf.facts(hostile).established;
  }));
  const std::vector<std::uint8_t> question(32);
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(deaf.request(hostile, {question.data(), 32}, {}, {}, clock_.now()).status, message::CallStatus::ok);
  // From now on it hears nothing, and each answer that it gets keeps its job.
  ASSERT_TRUE(until([&] {
    transport::transmit_from(deaf, *socket, clock_);
    return threads_->room() <= 1 && threads_->in_hand() == 0;
  }));
  EXPECT_EQ(threads_->room(), 1U);
  const message::SessionId session = connect();
  for (std::size_t i = 1; i <= 10; ++i) {
    ask(session, question);
    ASSERT_TRUE(until([&] { return answers_.size() == i; }));
    EXPECT_EQ(answers_.rbegin()->second.bytes.size(), 1000U);
  }
}

TEST_F(Handlers, WorkOnForNobodyAndEverythingComesBack) {
  std::atomic<bool> open{false};
  std::atomic<int> begun{0};
  start({.threads = 1, .requests = 16}, [&](HandledRequest& request, unsigned) {
    ++begun;
    open.wait(false);
    request.answer = {request.room.data(), 3000};
  });
  const message::SessionId session = connect();
  std::vector<message::MessageId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(ask(session, std::vector<std::uint8_t>(5000)));
  ASSERT_TRUE(until([&] { return begun == 1 && threads_->in_hand() == 5; }));
  for (const message::MessageId& id : ids) EXPECT_EQ(client().cancel(id, clock_.now()), message::CallStatus::ok);
  ASSERT_TRUE(until([&] { return withdrawn_ == 5; }));
  open = true;
  open.notify_all();
  ASSERT_TRUE(until([&] { return threads_->room() == room_; }));
  EXPECT_EQ(begun, 5);
  EXPECT_EQ(answers_.size(), 5U);
  for (const auto& [number, answer] : answers_) EXPECT_EQ(answer.status, message::MessageStatus::cancelled) << number;
  // Session and all, the endpoint has what it had.
  (void)client().close(session, clock_.now());
  EXPECT_TRUE(until([&] { return server().facts() == free_; }));
}

TEST_F(Handlers, SeeWhatCameWithARequestAndThatNobodyWaitsForItAnyMore) {
  std::atomic<int> begun{0};
  std::vector<std::uint8_t> metadata;
  Nanos deadline{};
  std::atomic<bool> withdrawn_at_first{false};
  start({.threads = 1}, [&](HandledRequest& request, unsigned) {
    metadata.assign(request.metadata.begin(), request.metadata.end());
    deadline = request.deadline;
    withdrawn_at_first = request.withdrawn();
    ++begun;
    while (request.code == 1 && !request.withdrawn()) std::this_thread::yield();
  });
  const message::SessionId session = connect();
  const std::uint8_t told[] = {1, 2, 3, 4, 5};
  std::array<std::uint8_t, 16> room{};
  const Nanos until_when{clock_.now().value + kPatience.value};
  const message::Submitted asked =
      client().request(session, {told, 5}, {room.data(), 16},
                       {.context = 0, .code = 1, .deadline = until_when, .metadata = told}, clock_.now());
  ASSERT_TRUE(until([&] { return begun == 1; }));
  EXPECT_FALSE(withdrawn_at_first);
  EXPECT_EQ(metadata, std::vector<std::uint8_t>(std::begin(told), std::end(told)));
  // But for the time on the way, which two readings of the clock do not tell to the last microsecond.
  EXPECT_NEAR(static_cast<double>(deadline.value), static_cast<double>(until_when.value), 0.9 * kPatience.value);
  ASSERT_EQ(client().cancel(asked.id, clock_.now()), message::CallStatus::ok);
  ASSERT_TRUE(until([&] { return threads_->room() == room_; }));
  // The place is used again, by one that nobody withdraws and that has neither.
  rooms_.emplace_back();
  ask(session, {9});
  ASSERT_TRUE(until([&] { return answers_.size() == 2; }));
  EXPECT_FALSE(withdrawn_at_first);
  EXPECT_TRUE(metadata.empty());
  EXPECT_EQ(deadline, message::kNever);
}

TEST_F(Handlers, MayDecline) {
  start({.threads = 1}, [](HandledRequest& request, unsigned) { request.declined = true; });
  ask(connect(), {1, 2, 3});
  ASSERT_TRUE(until([&] { return answers_.size() == 1; }));
  EXPECT_EQ(answers_[0].status, message::MessageStatus::refused);
  EXPECT_EQ(answers_[0].code, static_cast<std::uint16_t>(message::RefusalCode::declined));
  EXPECT_EQ(threads_->room(), room_);
}

TEST_F(Handlers, BySessionKeepTheOrderOfEach) {
  std::map<std::uint32_t, std::vector<int>> seen[3];
  start({.threads = 3, .requests = 64, .by_session = true},
        [&](HandledRequest& request, unsigned thread) { seen[thread][request.session.index].push_back(request.code); });
  constexpr int kEach = 40;
  std::vector<message::SessionId> sessions;
  for (int i = 0; i < 6; ++i) sessions.push_back(connect());
  for (int i = 0; i < kEach; ++i) {
    for (const message::SessionId& session : sessions) ask(session, {7}, static_cast<std::uint16_t>(i));
  }
  ASSERT_TRUE(until([&] { return answers_.size() == sessions.size() * kEach; }));
  threads_.reset();
  std::set<std::uint32_t> all;
  for (const auto& of_thread : seen) {
    for (const auto& [session, codes] : of_thread) {
      EXPECT_TRUE(all.insert(session).second) << "a session of two threads";
      EXPECT_EQ(codes.size(), static_cast<std::size_t>(kEach));
    }
  }
  EXPECT_EQ(all.size(), sessions.size());
}

TEST_F(Handlers, EndInTheMiddle) {
  std::atomic<int> begun{0};
  start({.threads = 2, .requests = 64}, [&](HandledRequest&, unsigned) { ++begun; });
  const message::SessionId session = connect();
  for (int i = 0; i < 50; ++i) ask(session, {1});
  ASSERT_TRUE(until([&] { return begun > 0; }));
  threads_.reset();
  EXPECT_LE(begun, 50);
}

}  // namespace
}  // namespace warpline::rpc
