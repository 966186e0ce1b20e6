// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/call_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/rpc/outstanding_calls.h"

namespace warpline::rpc {
namespace {

using Order = CallQueue::Order;

class Queue : public ::testing::Test {
 protected:
  void SetUp() override {
    auto wake = transport::WakeUp::make();
    ASSERT_TRUE(wake.ok());
    wake_ = std::move(wake).value();
    queue_ = std::make_unique<CallQueue>(3, *wake_);
  }
  SubmittedCall submit(Nanos patience = message::kNever) {
    return queue_->submit({.code = 7, .patience = patience}, {}, Nanos{100});
  }

  std::unique_ptr<transport::WakeUp> wake_;
  std::unique_ptr<CallQueue> queue_;
  std::uint32_t index_ = 99;
};

TEST_F(Queue, HasRoomForSoManyCallsUntilOneIsFreed) {
  std::vector<CallId> ids;
  for (int i = 0; i < 3; ++i) {
    const SubmittedCall submitted = submit();
    ASSERT_EQ(submitted.status, message::CallStatus::ok);
    ids.push_back(submitted.id);
  }
  EXPECT_EQ(submit().status, message::CallStatus::no_memory);
  EXPECT_FALSE(queue_->post([](void*) {}, nullptr));
  for (const CallId& id : ids) {
    ASSERT_EQ(queue_->next(index_), Order::submit);
    EXPECT_EQ(index_, id.index);
  }
  EXPECT_EQ(queue_->next(index_), Order::nothing);
  queue_->free(ids[1].index);
  const SubmittedCall again = submit();
  ASSERT_EQ(again.status, message::CallStatus::ok);
  EXPECT_EQ(again.id.index, ids[1].index);
  EXPECT_NE(again.id, ids[1]);
  EXPECT_EQ(submit().status, message::CallStatus::no_memory);
}

TEST_F(Queue, WakesTheOwner) {
  ASSERT_TRUE(wake_->begin_sleep());
  wake_->end_sleep();
  submit();
  EXPECT_FALSE(wake_->begin_sleep());
}

TEST_F(Queue, CopiesShortMessagesAndReckonsDeadlines) {
  std::array<std::uint8_t, message::kInlineBytes + 1> bytes{};
  bytes.fill(5);
  Call call;
  call.message = {bytes.data(), message::kInlineBytes};
  call.patience = Nanos{50};
  ASSERT_EQ(queue_->submit(call, {}, Nanos{100}).status, message::CallStatus::ok);
  call.message.length = bytes.size();
  call.patience = message::kNever;
  ASSERT_EQ(queue_->submit(call, {}, Nanos{100}).status, message::CallStatus::ok);
  ASSERT_EQ(queue_->next(index_), Order::submit);
  const CallQueue::Place& small = queue_->at(index_);
  EXPECT_EQ(small.deadline, Nanos{150});
  EXPECT_NE(small.call.message.data, bytes.data());
  EXPECT_TRUE(std::equal(small.call.message.data, small.call.message.data + message::kInlineBytes, bytes.begin()));
  ASSERT_EQ(queue_->next(index_), Order::submit);
  EXPECT_EQ(queue_->at(index_).call.message.data, bytes.data());
  EXPECT_EQ(queue_->at(index_).deadline, message::kNever);
  call.message.length = message::kMaxMessageBytes + 1;
  EXPECT_EQ(queue_->submit(call, {}, Nanos{100}).status, message::CallStatus::too_long);
}

TEST_F(Queue, CancelsEachCallOnceAndNoneThatHasEnded) {
  const CallId id = submit().id;
  EXPECT_TRUE(queue_->cancel(id));
  EXPECT_FALSE(queue_->cancel(id));
  EXPECT_FALSE(queue_->cancel({}));
  EXPECT_EQ(queue_->next(index_), Order::submit);
  EXPECT_EQ(queue_->next(index_), Order::cancel);
  EXPECT_EQ(index_, id.index);
  const CallId late = submit().id;
  EXPECT_TRUE(queue_->cancel(late));
  EXPECT_EQ(queue_->next(index_), Order::submit);
  queue_->free(late.index);  // it ended before its cancelling came
  EXPECT_FALSE(queue_->cancel(late));
  EXPECT_EQ(queue_->next(index_), Order::nothing);
}

TEST_F(Queue, ThatIsClosedTakesNothing) {
  queue_->close();
  EXPECT_EQ(submit().status, message::CallStatus::no_memory);
}

TEST(CallQueueThreads, GetEachCallOnceAndTheirPlacesBack) {
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kEach = 1'000;
  auto wake = transport::WakeUp::make();
  ASSERT_TRUE(wake.ok());
  CallQueue queue(8, **wake);
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&queue, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        SubmittedCall submitted;
        while (submitted = queue.submit({}, {.tag = thread * kEach + i}, Nanos{0}),
               submitted.status != message::CallStatus::ok)
          std::this_thread::yield();
        if (i % 3 == 0) (void)queue.cancel(submitted.id);
      }
    });
  }
  std::vector<int> seen(kThreads * kEach);
  for (std::uint64_t taken = 0; taken < kThreads * kEach;) {
    std::uint32_t index = 0;
    const Order order = queue.next(index);
    if (order == Order::nothing) std::this_thread::yield();
    if (order != Order::submit) continue;
    ++seen[queue.at(index).done.tag];
    ++taken;
    queue.free(index);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::ranges::all_of(seen, [](int times) { return times == 1; }));
  std::uint32_t index = 0;
  EXPECT_EQ(queue.next(index), Order::nothing);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(queue.submit({}, {}, Nanos{0}).status, message::CallStatus::ok);
}

TEST(OutstandingCalls, GoInTheOrderOfTheirPriority) {
  message::Two two;
  auto wake = transport::WakeUp::make();
  ASSERT_TRUE(wake.ok());
  CallQueue queue(32, *wake.value());
  OutstandingCalls calls(queue);
  std::vector<std::uint16_t> codes;
  two.server.handle = [&](const message::MessageEvent& event) {
    if (event.kind != message::EventKind::request) return false;
    codes.push_back(event.code);
    return two.server.endpoint.respond(event.id, {}, {}, two.net.now) == message::CallStatus::ok;
  };
  two.client.handle = [&](const message::MessageEvent& event) { return calls.handle(event, two.net.now); };
  Call call{.session = two.session, .message = {two.payload.data(), 30'000}};
  for (int i = 0; i < 20; ++i) ASSERT_EQ(queue.submit(call, {}, two.net.now).status, message::CallStatus::ok);
  call.code = 1;
  call.priority = message::Priority::high;
  ASSERT_EQ(queue.submit(call, {}, two.net.now).status, message::CallStatus::ok);
  ASSERT_TRUE(calls.advance(two.client.endpoint, true, two.net.now));
  ASSERT_TRUE(two.net.run([&] { return codes.size() == 21; }));
  EXPECT_EQ(codes.front(), 1);
}

}  // namespace
}  // namespace warpline::rpc
