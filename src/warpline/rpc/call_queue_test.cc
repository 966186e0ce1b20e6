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
#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/outstanding_calls.h"
#include "warpline/rpc/pending_call.h"

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
  two.client.handle = [&](const message::MessageEvent& event) {
    return calls.handle(two.client.endpoint, event, two.net.now);
  };
  Call call{.session = two.session, .message = {two.payload.data(), 30'000}};
  for (int i = 0; i < 20; ++i) ASSERT_EQ(queue.submit(call, {}, two.net.now).status, message::CallStatus::ok);
  call.code = 1;
  call.priority = message::Priority::high;
  ASSERT_EQ(queue.submit(call, {}, two.net.now).status, message::CallStatus::ok);
  ASSERT_TRUE(calls.advance(two.client.endpoint, true, two.net.now));
  ASSERT_TRUE(two.net.run([&] { return codes.size() == 21; }));
  EXPECT_EQ(codes.front(), 1);
}

/// A client's calls whose answers go into its endpoint's memory, and a server that answers with metadata.
struct LentAnswers {
  LentAnswers() {
    two.server.handle = [this](const message::MessageEvent& event) {
      if (event.kind != message::EventKind::request) return false;
      const message::ConstBuffer bytes{two.payload.data(), answer_bytes};
      return two.server.endpoint.respond(event.id, bytes, {.code = 9, .metadata = metadata}, two.net.now) ==
             message::CallStatus::ok;
    };
    two.client.handle = [this](const message::MessageEvent& event) {
      return calls.handle(two.client.endpoint, event, two.net.now);
    };
  }

  message::CallStatus ask() {
    const Call call{.session = two.session, .response_in_endpoint = true};
    return queue.submit(call, {ended, this, 0}, two.net.now).status;
  }
  static void ended(void* context, std::uint64_t /*tag*/, const CallResult& result) {
    auto& self = *static_cast<LentAnswers*>(context);
    ++self.ends;
    self.status = result.status;
    self.code = result.code;
    if (result.status != message::MessageStatus::ok) return;
    self.answer.assign(result.data, result.data + result.length);
    self.with_it.assign(result.metadata.begin(), result.metadata.end());
    self.free_meanwhile = self.two.client.endpoint.facts().free_receive_bytes;
  }

  message::Two two;
  std::unique_ptr<transport::WakeUp> wake = *transport::WakeUp::make();
  CallQueue queue{4, *wake};
  OutstandingCalls calls{queue};
  std::uint32_t answer_bytes = 0;
  std::vector<std::uint8_t> metadata{1, 2, 3};
  int ends = 0;
  message::MessageStatus status = message::MessageStatus::peer_lost;
  std::uint16_t code = 0;
  std::vector<std::uint8_t> answer;
  std::vector<std::uint8_t> with_it;
  std::uint64_t free_meanwhile = 0;
};

TEST(OutstandingCalls, LendAnAnswerOfAnyLengthAndItsMetadataUntilDoneHasReturned) {
  for (const std::uint32_t bytes : {0U, 1U, message::kInlineBytes, message::kInlineBytes + 1, 300'000U, 1U << 20}) {
    LentAnswers asked;
    asked.answer_bytes = bytes;
    const message::EndpointFacts before = asked.two.client.endpoint.facts();
    for (int i = 1; i <= 20; ++i) {
      ASSERT_EQ(asked.ask(), message::CallStatus::ok);
      ASSERT_TRUE(asked.calls.advance(asked.two.client.endpoint, true, asked.two.net.now));
      ASSERT_TRUE(asked.two.net.run([&] { return asked.ends == i; }));
      ASSERT_EQ(asked.status, message::MessageStatus::ok);
      EXPECT_EQ(asked.code, 9);
      EXPECT_TRUE(std::ranges::equal(asked.answer, std::span(asked.two.payload).first(bytes)));
      EXPECT_EQ(asked.with_it, asked.metadata);
    }
    const message::EndpointFacts after = asked.two.client.endpoint.facts();
    EXPECT_EQ(after.free_receive_bytes, before.free_receive_bytes);
    EXPECT_EQ(after.free_messages, before.free_messages);
    if (bytes > message::kInlineBytes) {
      EXPECT_LT(asked.free_meanwhile, before.free_receive_bytes);
    }
  }
}

TEST(OutstandingCalls, GiveBackTheMemoryOfAnAnswerThatIsArrivingWhenAllEnd) {
  LentAnswers asked;
  asked.answer_bytes = 1 << 20;
  message::Endpoint& endpoint = asked.two.client.endpoint;
  const message::EndpointFacts before = endpoint.facts();
  ASSERT_EQ(asked.ask(), message::CallStatus::ok);
  ASSERT_TRUE(asked.calls.advance(endpoint, true, asked.two.net.now));
  ASSERT_TRUE(asked.two.net.run([&] { return endpoint.facts().free_receive_bytes != before.free_receive_bytes; }));
  asked.calls.end_all(endpoint, asked.two.net.now);
  EXPECT_EQ(asked.ends, 1);
  EXPECT_EQ(asked.status, message::MessageStatus::cancelled);
  EXPECT_EQ(endpoint.facts().free_receive_bytes, before.free_receive_bytes);
}

TEST(OutstandingCalls, DoNotLendWhatNobodyWouldReadInTime) {
  LentAnswers asked;
  std::array<std::uint8_t, 8> room{};
  const Call call{.session = asked.two.session, .response = {room.data(), room.size()}, .response_in_endpoint = true};
  EXPECT_EQ(asked.queue.submit(call, {}, asked.two.net.now).status, message::CallStatus::not_allowed);
  struct Asker {
    SubmittedCall submit(const Call& /*call*/, const CallDone& /*done*/) {
      ++asked;
      return {};
    }
    [[nodiscard]] static bool in_callback() { return false; }
    int asked = 0;
  } asker;
  PendingCall pending;
  EXPECT_EQ(pending.submit(asker, {.response_in_endpoint = true}), message::CallStatus::not_allowed);
  const auto queue = CompletionQueue::make(1);
  ASSERT_TRUE(queue.ok());
  EXPECT_EQ((*queue)->submit(asker, {.response_in_endpoint = true}, 0).status, message::CallStatus::not_allowed);
  EXPECT_EQ(asker.asked, 0);
}

}  // namespace
}  // namespace warpline::rpc
