// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/loop_calls.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/request_queue.h"

namespace warpline::rpc {
namespace {

constexpr std::uint32_t kLoopCalls = 32;

/// Sleeps until there may be something to poll.
template <typename Source>
void sleep_by(Source& source) {
  if (!source.arm()) return;
  pollfd watched{source.descriptor(), POLLIN, 0};
  (void)::poll(&watched, 1, -1);
}

/// A client that makes calls, and a server whose requests a thread takes in a loop of its own, each host with a thread.
class EventLoops : public ::testing::Test {
 protected:
  using Handler = std::function<void(RequestQueue& queue, const QueuedRequest& request)>;

  /// What an answer said.
  struct End {
    CallResult result;
    std::vector<std::uint8_t> bytes;
  };

  void serve(std::uint32_t requests, Handler handler) {
    server_.emplace(open_host());
    auto queue = RequestQueue::make(*server_, requests);
    ASSERT_TRUE(queue.ok()) << queue.error().message();
    queue_ = std::move(queue).value();
    threads_[0] = std::thread([this] { server_->run(); });
    threads_[1] = std::thread([this, handler = std::move(handler)] {
      std::array<QueuedRequest, 8> requests_now;
      while (!stop_.load()) {
        const std::size_t count = queue_->poll(requests_now);
        for (std::size_t i = 0; i < count; ++i) handler(*queue_, requests_now[i]);
        queue_->flush();
        if (count == 0) sleep_by(*queue_);
      }
    });
  }

  void connect(std::uint32_t calls = kLoopCalls) {
    MessageHost::Settings settings;
    settings.local = kAnyPort;
    settings.calls = calls + LoopCalls::kRows;
    settings.endpoint.receive_bytes = 4 << 20;
    settings.endpoint.peer_timeout = settings.endpoint.connect_timeout = Nanos{30'000'000'000};
    auto host = MessageHost::open(settings);
    ASSERT_TRUE(host.ok()) << host.error().message();
    client_.emplace(std::move(host).value());
    auto made = LoopCalls::make(*client_, {Ipv4Address{{127, 0, 0, 1}}, server_->port()}, calls);
    ASSERT_TRUE(made.ok()) << made.error().message();
    calls_ = std::move(made).value();
    threads_[2] = std::thread([this] { client_->run(); });
  }

  void TearDown() override {
    stop_.store(true);
    // A request in vain wakes whoever takes them.
    if (server_ && threads_[1].joinable()) {
      if (!calls_) connect();
      (void)calls_->add(Call{});
      calls_->flush();
      threads_[1].join();
    }
    if (client_) client_->stop();
    if (server_) server_->stop();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
    client_.reset();
    server_.reset();
  }

  std::uint32_t ask(const std::vector<std::uint8_t>& bytes, std::uint16_t code = 0) {
    return calls_->add({.message = {bytes.data(), static_cast<std::uint32_t>(bytes.size())}, .code = code});
  }

  /// Waits for the ends of so many calls, by their places.
  std::map<std::uint32_t, End> take(std::size_t count) {
    std::map<std::uint32_t, End> taken;
    while (taken.size() < count) {
      std::array<LoopCallEnd, 5> ends;
      const std::size_t there = calls_->poll(ends);
      for (const LoopCallEnd& end : std::span(ends).first(there)) {
        End& kept = taken[end.place];
        kept.result = end.result;
        if (end.result.status == message::MessageStatus::ok && end.result.data != nullptr)
          kept.bytes.assign(end.result.data, end.result.data + end.result.length);
        calls_->release(end.place);
      }
      calls_->flush();
      if (there == 0) sleep_by(*calls_);
    }
    return taken;
  }

  std::optional<MessageHost> server_;
  std::optional<MessageHost> client_;
  std::unique_ptr<RequestQueue> queue_;
  std::unique_ptr<LoopCalls> calls_;
  std::array<std::thread, 3> threads_;
  std::atomic<std::uint32_t> seen_{0};  ///< for handlers, which requests reach until the end of the test
  std::atomic<bool> stop_{false};
};

/// Answers with the request, where it lies, and a code that tells the request's.
void answer_same(RequestQueue& queue, const QueuedRequest& request) {
  if (request.kind == QueuedRequest::Kind::request) queue.answer(request.place, request.data, request.code);
}

std::vector<std::uint8_t> counted(std::size_t size, std::uint8_t first) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

TEST_F(EventLoops, ManyCallsOfAllSizesEndWithTheirAnswers) {
  serve(4, answer_same);  // fewer than come: the rest waits with the endpoint
  connect();
  constexpr std::array<std::size_t, 8> kSizes{0, 1, 127, 128, 129, 2000, 70'000, 300'000};
  std::deque<std::vector<std::uint8_t>> asked;
  std::map<std::uint32_t, std::size_t> places;
  for (std::size_t i = 0; i < 20 * kLoopCalls; ++i) {
    asked.push_back(counted(kSizes[i % (i % 40 == 0 ? kSizes.size() : 6)], static_cast<std::uint8_t>(i)));
    places[ask(asked.back(), static_cast<std::uint16_t>(i))] = i;
  }
  EXPECT_EQ(calls_->under_way(), asked.size());
  calls_->flush();
  for (const auto& [place, end] : take(asked.size())) {
    EXPECT_EQ(end.result.status, message::MessageStatus::ok);
    EXPECT_EQ(end.result.code, static_cast<std::uint16_t>(places[place]));
    EXPECT_EQ(end.bytes, asked[places[place]]);
  }
  EXPECT_EQ(calls_->under_way(), 0U);
}

TEST_F(EventLoops, ResponsesGoWhereTheCallSays) {
  serve(4, answer_same);
  connect();
  const std::vector<std::uint8_t> bytes = counted(5000, 1);
  std::vector<std::uint8_t> there(5000), small(10);
  Call call{.message = {bytes.data(), 5000}, .response = {there.data(), 5000}};
  const std::uint32_t fits = calls_->add(call);
  call.response = {small.data(), 10};
  const std::uint32_t too_long = calls_->add(call);
  calls_->flush();
  const auto ends = take(2);
  EXPECT_EQ(ends.at(fits).result.length, 5000U);
  EXPECT_EQ(there, bytes);
  EXPECT_EQ(ends.at(too_long).result.status, message::MessageStatus::too_long);
  EXPECT_EQ(ends.at(too_long).result.length, 5000U);
}

TEST_F(EventLoops, WhatIsDeclinedOrCancelledSaysSo) {
  std::atomic<int> withdrawn{0};
  std::optional<std::uint32_t> kept;
  serve(4, [&](RequestQueue& queue, const QueuedRequest& request) {
    if (request.kind == QueuedRequest::Kind::withdrawn) {
      ++withdrawn;
      queue.answer(request.place, {});
    } else if (request.code == 1) {
      queue.decline(request.place);
    } else {
      kept = request.place;
      if (request.code == 0) queue.answer(request.place, {});
    }
  });
  connect();
  const std::uint32_t declined = ask({}, 1);
  const std::uint32_t before = ask({}, 2);
  calls_->cancel(before);
  calls_->flush();
  auto ends = take(2);
  EXPECT_EQ(ends.at(declined).result.status, message::MessageStatus::refused);
  EXPECT_EQ(ends.at(declined).result.reach, message::Reach::handled);
  EXPECT_EQ(ends.at(before).result.status, message::MessageStatus::cancelled);
  EXPECT_EQ(ends.at(before).result.reach, message::Reach::never_sent);

  const std::uint32_t cancelled = ask({}, 2);
  const std::uint32_t answered = ask({}, 0);  // behind it on the way
  calls_->flush();
  EXPECT_EQ(take(1).count(answered), 1U);
  calls_->cancel(cancelled);
  EXPECT_EQ(take(1).at(cancelled).result.status, message::MessageStatus::cancelled);
  const std::uint32_t late = calls_->add({.code = 2, .patience = Nanos{1'000'000}});
  calls_->flush();
  EXPECT_EQ(take(1).at(late).result.status, message::MessageStatus::deadline);
  while (withdrawn.load() < 2) std::this_thread::yield();
}

/// Four notices per place: the withdrawal of a request, the end of its answer, the next request, its withdrawal. With
/// 65 places that is 260, more than a ring of 256 entries holds.
TEST(RequestQueue, HasRoomForAllNoticesOfAThreadThatAnswersWithoutPolling) {
  constexpr std::uint32_t kPlaces = 65;
  MessageHost host = open_host();  // which wakes and is woken; the endpoints are driven here
  auto made = RequestQueue::make(host, kPlaces);
  ASSERT_TRUE(made.ok()) << made.error().message();
  RequestQueue& queue = **made;
  message::Two two;
  const std::array sessions{two.session, two.net.connect(two.client, two.server).first};
  two.server.handle = [&](const message::MessageEvent& event) {
    return queue.handle(two.server.endpoint, event, two.net.now);
  };
  const auto ask_and_withdraw = [&](const auto& between) {
    std::vector<message::MessageId> asked;
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      const message::Submitted submitted =
          two.client.endpoint.request(sessions[i % 2], bytes_of("?"), {}, {}, two.net.now);
      ASSERT_EQ(submitted.status, message::CallStatus::ok);
      asked.push_back(submitted.id);
    }
    two.net.run_for(Nanos{message::kMs});
    between();
    for (const message::MessageId id : asked)
      ASSERT_EQ(two.client.endpoint.cancel(id, two.net.now), message::CallStatus::ok);
    two.net.run_for(Nanos{message::kMs});
  };
  std::array<QueuedRequest, 4 * kPlaces> notices;
  ask_and_withdraw([&] { ASSERT_EQ(queue.poll(notices), kPlaces); });
  const std::vector<std::uint8_t> answer = counted(message::kInlineBytes + 1, 0);
  for (std::uint32_t i = 0; i < kPlaces; ++i)
    queue.answer(notices[i].place, {answer.data(), static_cast<std::uint32_t>(answer.size())});
  (void)queue.advance(two.server.endpoint, false, two.net.now);
  ask_and_withdraw([] {});
  const auto told = std::span(notices).first(queue.poll(notices));
  for (const auto kind : {QueuedRequest::Kind::sent, QueuedRequest::Kind::request, QueuedRequest::Kind::withdrawn}) {
    EXPECT_EQ(std::ranges::count(told, kind, &QueuedRequest::kind), kPlaces) << static_cast<int>(kind);
  }
}

TEST_F(EventLoops, RowsBecomeRows) {
  serve(64, [](RequestQueue& queue, const QueuedRequest& request) {
    if (request.kind == QueuedRequest::Kind::request) queue.answer(request.place, request.data);
  });
  connect();
  constexpr std::uint32_t kLines = 5000, kBytes = 24;
  const std::vector<std::uint8_t> requests = counted(kLines * kBytes, 7);
  std::vector<std::uint8_t> responses(requests.size());
  std::vector<std::uint32_t> lengths(kLines);
  CallRows rows({.requests = requests.data(),
                 .request_bytes = kBytes,
                 .responses = responses.data(),
                 .response_bytes = kBytes,
                 .lengths = lengths.data(),
                 .rows = kLines,
                 .at_once = 200});
  CallRows beside({.requests = requests.data(), .request_bytes = kBytes, .rows = kLines, .at_once = 200});
  const std::uint32_t place = calls_->add(rows);
  const std::uint32_t other = calls_->add(beside);  // has to wait for room, and for responses that have none
  calls_->flush();
  const auto ends = take(2);
  EXPECT_EQ(ends.at(place).result.status, message::MessageStatus::ok);
  EXPECT_EQ(rows.failed_row(), kLines);
  EXPECT_EQ(responses, requests);
  EXPECT_EQ(std::ranges::count(lengths, kBytes), kLines);
  EXPECT_EQ(ends.at(other).result.status, message::MessageStatus::ok);
}

TEST_F(EventLoops, RowsEndWithTheFirstThatFails) {
  serve(64, [&](RequestQueue& queue, const QueuedRequest& request) {
    if (request.kind != QueuedRequest::Kind::request) return;
    ++seen_;
    queue.answer(request.place, request.data, request.data.data[0] == 9 ? 77 : 0);
  });
  connect();
  constexpr std::uint32_t kLines = 5000;
  std::vector<std::uint8_t> requests(kLines, 1);
  requests[100] = requests[103] = 9;
  CallRows rows({.requests = requests.data(), .request_bytes = 1, .rows = kLines, .at_once = 8});
  (void)calls_->add(rows);
  calls_->flush();
  (void)take(1);
  EXPECT_EQ(rows.failed_row(), 100U);
  EXPECT_EQ(rows.failure().code, 77);
  EXPECT_LT(seen_.load(), 200U);
}

TEST_F(EventLoops, RowsThatAreCancelledEnd) {
  serve(64, [&](RequestQueue& queue, const QueuedRequest& request) {
    if (request.kind == QueuedRequest::Kind::withdrawn) queue.decline(request.place);
    if (request.kind == QueuedRequest::Kind::request) ++seen_;
  });
  connect();
  const std::vector<std::uint8_t> requests(100);
  CallRows rows({.requests = requests.data(), .request_bytes = 1, .rows = 100, .at_once = 8});
  const std::uint32_t place = calls_->add(rows);
  calls_->flush();
  while (seen_.load() == 0) std::this_thread::yield();
  calls_->cancel(place);
  EXPECT_EQ(take(1).at(place).result.status, message::MessageStatus::cancelled);
  CallRows never({.requests = requests.data(), .request_bytes = 1, .rows = 100, .at_once = 8});
  calls_->cancel(calls_->add(never));
  EXPECT_EQ(take(1).begin()->second.result.status, message::MessageStatus::cancelled);
}

TEST_F(EventLoops, ASessionThatWasLostIsOpenedAgain) {
  serve(4, answer_same);
  connect();
  (void)ask(counted(3, 0));
  calls_->flush();
  EXPECT_EQ(take(1).begin()->second.result.status, message::MessageStatus::ok);
  std::pair<MessageHost*, LoopCalls*> ours(&*client_, calls_.get());
  const auto close = [](void* context) {
    const auto [host, calls] = *static_cast<std::pair<MessageHost*, LoopCalls*>*>(context);
    (void)host->endpoint().close(calls->session(), host->now());
  };
  ASSERT_TRUE(client_->post(close, &ours));
  while (calls_->loss() == message::LossReason::none) std::this_thread::yield();
  EXPECT_EQ(calls_->loss(), message::LossReason::closed_here);
  (void)ask(counted(3, 5));
  calls_->flush();
  EXPECT_EQ(take(1).begin()->second.bytes, counted(3, 5));
}

TEST_F(EventLoops, TheEndOfTheHostIsTheEndOfItsCalls) {
  serve(64, [](RequestQueue& queue, const QueuedRequest& request) {
    if (request.code == 9) queue.decline(request.place);
  });
  connect();
  const std::vector<std::uint8_t> requests(100);
  CallRows rows({.requests = requests.data(), .request_bytes = 1, .rows = 100, .at_once = 8});
  (void)calls_->add(rows);
  const std::vector<std::uint8_t> bytes = counted(1000, 1);  // read until the calls have ended
  for (int i = 0; i < 3; ++i) (void)ask(bytes);
  calls_->flush();
  const std::uint32_t declined = ask({}, 9);
  calls_->flush();
  EXPECT_EQ(take(1).count(declined), 1U);
  client_->stop();
  threads_[2].join();
  client_.reset();
  std::array<LoopCallEnd, 8> ends;
  ASSERT_EQ(calls_->poll(ends), 4U);
  for (const LoopCallEnd& end : std::span(ends).first(4))
    EXPECT_EQ(end.result.status, message::MessageStatus::cancelled);
  connect();  // for who ends the server
}

TEST_F(EventLoops, WhoHasLeftTheHostHasNoCallsUnderWay) {
  serve(64, [](RequestQueue& queue, const QueuedRequest& request) {
    if (request.code == 9) queue.decline(request.place);
  });
  connect();
  const std::vector<std::uint8_t> bytes = counted(1000, 1);  // read until the calls have ended
  for (int i = 0; i < 3; ++i) (void)ask(bytes);
  const std::uint32_t declined = ask({}, 9);
  calls_->flush();
  EXPECT_EQ(take(1).count(declined), 1U);
  client_->stop();
  threads_[2].join();
  client_->leave(*calls_);
  (void)ask({});
  calls_->flush();
  for (const auto& [place, end] : take(4)) EXPECT_EQ(end.result.status, message::MessageStatus::peer_lost);
  client_.reset();
  connect();  // for who ends the server
}

TEST(RequestQueue, NeedsRoom) {
  MessageHost host = open_host();
  EXPECT_EQ(RequestQueue::make(host, 0).error().kind, ErrorKind::usage);
  EXPECT_EQ(LoopCalls::make(host, {Ipv4Address{{127, 0, 0, 1}}, 9}, 0).error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace warpline::rpc
