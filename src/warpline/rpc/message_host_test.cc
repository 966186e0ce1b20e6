// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/message_host.h"

#include <gtest/gtest.h>
#include <poll.h>

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

#include "warpline/message/metadata.h"
#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/loop_calls.h"
#include "warpline/rpc/pending_call.h"

namespace warpline::rpc {
namespace {

/// Nothing comes or leaves any more, and what was under way never lands.
class FailedTransport final : public transport::Transport {
 public:
  std::span<const message::Datagram> receive(Nanos) override { return {}; }
  [[nodiscard]] bool settled() override { return false; }
  [[nodiscard]] bool failed() const override { return true; }
  std::span<message::Outgoing> room() override { return {}; }
  void send(std::size_t, Nanos) override {}
  std::span<const std::uint64_t> completed() override { return {}; }
  void wait(Nanos, Nanos) override {}
};

TEST(MessageHost, EndsWhenItsTransportHasFailed) {
  FailedTransport transport;
  auto host = MessageHost::over(transport, {});
  ASSERT_TRUE(host.ok());
  const auto session = host->connect({Ipv4Address{{127, 0, 0, 1}}, 9});
  ASSERT_TRUE(session.ok());
  const auto answer = host->ask(*session, "anybody?");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::environment);
  host->serve([](auto, auto) { return std::nullopt; });
  EXPECT_FALSE(host->turn());
  EXPECT_EQ(host->descriptor().error().kind, ErrorKind::usage);
}

TEST(MessageHost, EndsCallsOfItsPartsAfterItsTransportHasFailed) {
  FailedTransport transport;
  std::unique_ptr<LoopCalls> calls;
  auto host = MessageHost::over(transport, {.calls = 4 + LoopCalls::kRows});
  ASSERT_TRUE(host.ok());
  calls = *LoopCalls::make(*host, {Ipv4Address{{127, 0, 0, 1}}, 9}, 4);
  (void)calls->add(Call{});
  calls->flush();
  host->run();
  MessageHost* const ends[] = {&*host};
  MessageHost::end_handlers(ends);
  std::array<LoopCallEnd, 2> ended;
  ASSERT_EQ(calls->poll(ended), 1U);
  EXPECT_EQ(ended[0].result.status, message::MessageStatus::cancelled);
  host->leave(*calls);
}

/// Nothing comes or leaves; counts the turns of the loop, and ends it when it sleeps, or after many turns.
class IdleTransport : public transport::Transport {
 public:
  explicit IdleTransport(int descriptor) : descriptor_(descriptor) {}
  std::span<const message::Datagram> receive(Nanos) override {
    constexpr int kMany = 1000;
    if (++turns == kMany) host->stop();
    return {};
  }
  std::span<message::Outgoing> room() override { return {}; }
  void send(std::size_t, Nanos) override {}
  std::span<const std::uint64_t> completed() override { return {}; }
  void wait(Nanos, Nanos) override {
    ++sleeps;
    host->stop();
  }
  [[nodiscard]] int descriptor() const override { return descriptor_; }

  MessageHost* host = nullptr;
  int turns = 0;
  int sleeps = 0;

 private:
  int descriptor_;  // which nobody reads
};

TEST(MessageHost, PollsAsLongAsItIsToldBeforeItSleeps) {
  const auto run = [](int descriptor, std::optional<Nanos> poll_for) {
    IdleTransport transport(descriptor);
    auto host = MessageHost::over(transport, {.poll_for = poll_for});
    EXPECT_TRUE(host.ok());
    transport.host = &*host;
    host->run();
    return std::pair(transport.turns, transport.sleeps);
  };
  constexpr int kSleeps = 0;
  constexpr int kOnlyPolls = -1;
  EXPECT_EQ(run(kSleeps, {}), std::pair(1, 1));
  EXPECT_EQ(run(kOnlyPolls, Nanos{0}), std::pair(1, 1));
  EXPECT_EQ(run(kSleeps, message::kNever), std::pair(1000, 0));
  EXPECT_EQ(run(kOnlyPolls, message::kNever), std::pair(1000, 0));
  EXPECT_GT(run(kOnlyPolls, {}).first, 1);  // looks again before it gives way, which costs a system call
}

/// Is told to drain while it sleeps, with nothing that would have to be answered.
TEST(MessageHost, ThatSleepsEndsWhenItIsToldToDrain) {
  class Sleeping final : public IdleTransport {
   public:
    Sleeping() : IdleTransport(0) {}
    void wait(Nanos, Nanos) override { ++sleeps == 1 ? host->drain(Nanos{30'000'000'000}) : host->stop(); }
  };
  Sleeping transport;
  auto host = MessageHost::over(transport, {});
  ASSERT_TRUE(host.ok());
  transport.host = &*host;
  host->run();
  EXPECT_EQ(transport.sleeps, 1);
  EXPECT_TRUE(host->endpoint().drained());
}

/// A client, and a server that answers; each with a thread of its own.
class Hosts : public ::testing::Test {
 protected:
  void start(std::uint32_t calls = 1024) {
    client_.emplace(open_host(calls));
    serving_ = std::thread([this] { server_.run(); });
    session_ = connect(server_.port());
    asking_ = std::thread([this] { client_->run(); });
  }
  message::SessionId connect(std::uint16_t port) {
    const auto opened = client_->connect({Ipv4Address{{127, 0, 0, 1}}, port});
    EXPECT_TRUE(opened.ok());
    return *opened;
  }
  void end(MessageHost& host, std::thread& thread) {
    host.stop();
    if (thread.joinable()) thread.join();
  }
  void TearDown() override {
    if (client_) end(*client_, asking_);
    end(server_, serving_);
  }

  MessageHost server_ = open_host();
  std::optional<MessageHost> client_;
  message::SessionId session_;
  std::thread serving_;
  std::thread asking_;
};

TEST_F(Hosts, TakeCallsFromThreadsThatWait) {
  server_.handle(echo);
  start();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        std::string text = std::to_string(t) + " asks " + std::to_string(i);
        if (i % 10 == 0) text.append(3000, 'x');
        std::array<std::uint8_t, 4000> room;
        PendingCall call;
        ASSERT_EQ(call.submit(*client_,
                              {.session = session_, .message = bytes_of(text), .response = {room.data(), room.size()}}),
                  message::CallStatus::ok);
        const CallResult& result = call.wait();
        EXPECT_TRUE(call.done());
        const bool same = result.status == message::MessageStatus::ok && result.length == text.size() &&
                          std::equal(text.begin(), text.end(), result.data);
        right += same && result.reach == message::Reach::handled ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 600);
}

TEST_F(Hosts, PutEndsIntoAQueueThatSleepsByADescriptor) {
  server_.handle(echo);
  start();
  auto made = CompletionQueue::make(8);
  ASSERT_TRUE(made.ok());
  CompletionQueue& queue = **made;
  constexpr std::uint64_t kCalls = 500;
  std::vector<int> ends(kCalls);
  std::uint64_t asked = 0;
  for (std::uint64_t ended = 0; ended < kCalls;) {
    while (asked < kCalls && queue.submit(*client_, {.session = session_, .message = bytes_of("x")}, asked).status ==
                                 message::CallStatus::ok)
      ++asked;
    ASSERT_LE(asked - ended, 8U);
    std::array<Completion, 3> completions;
    const std::size_t count = queue.poll(completions);
    for (const Completion& completion : std::span(completions).first(count)) {
      ++ends[completion.tag];
      EXPECT_EQ(completion.result.status, message::MessageStatus::ok);
    }
    ended += count;
    if (count == 0) queue.wait();
  }
  EXPECT_TRUE(std::ranges::all_of(ends, [](int times) { return times == 1; }));
}

struct Chain {
  MessageHost* host;
  message::SessionId session;
  int left;
  std::atomic<bool> ended{false};
  static void next(void* self, std::uint64_t, const CallResult& result) {
    auto& chain = *static_cast<Chain*>(self);
    EXPECT_EQ(result.status, message::MessageStatus::ok);
    if (chain.left-- > 0) {
      EXPECT_EQ(chain.host->submit({.session = chain.session, .message = bytes_of("on")}, {next, self, 0}).status,
                message::CallStatus::ok);
    } else {
      chain.ended = true;
      chain.ended.notify_one();
    }
  }
};

TEST_F(Hosts, TakeCallsFromTheEndOfAnotherAlthoughTheyHavePlaceForOne) {
  server_.handle(echo);
  start(1);
  Chain chain{&*client_, session_, 100};
  ASSERT_EQ(client_->submit({.session = session_, .message = bytes_of("on")}, {Chain::next, &chain, 0}).status,
            message::CallStatus::ok);
  chain.ended.wait(false);
  EXPECT_EQ(chain.left, -1);
}

TEST_F(Hosts, GoAwayWithAllThatTheyHaveTakenAnswered) {
  std::atomic<std::uint64_t> handled{0};
  server_.handle([&](auto request, auto room) {
    ++handled;
    return echo(request, room);
  });
  start();
  std::uint64_t answered = 0;
  bool refused = false;
  while (!refused) {
    std::deque<PendingCall> calls(100);
    for (PendingCall& call : calls) {
      ASSERT_EQ(call.submit(*client_, {.session = session_, .message = bytes_of("x")}), message::CallStatus::ok);
    }
    if (answered == 500) server_.drain(Nanos{20'000'000'000});
    for (PendingCall& call : calls) {
      const CallResult& result = call.wait();
      if (result.status == message::MessageStatus::ok) {
        ++answered;
        continue;
      }
      refused = true;
      // The session may be over by the time that it is asked for.
      EXPECT_TRUE(result.status == message::MessageStatus::peer_lost ||
                  result.code == static_cast<std::uint16_t>(message::RefusalCode::going_away));
      EXPECT_LE(result.reach, message::Reach::not_handled);
    }
  }
  serving_.join();  // by itself
  EXPECT_TRUE(server_.endpoint().drained());
  EXPECT_EQ(handled, answered);
  end(*client_, asking_);
  EXPECT_FALSE(client_->endpoint().facts(session_).established);
}

TEST_F(Hosts, RunTasksOnTheirThread) {
  start();
  struct Seen {
    std::thread::id thread;
    std::atomic<bool> done{false};
  } seen;
  ASSERT_TRUE(client_->post(
      [](void* context) {
        static_cast<Seen*>(context)->thread = std::this_thread::get_id();
        static_cast<Seen*>(context)->done = true;
        static_cast<Seen*>(context)->done.notify_one();
      },
      &seen));
  seen.done.wait(false);
  EXPECT_EQ(seen.thread, asking_.get_id());
}

TEST_F(Hosts, QueueMoreCallsThanASessionTakesAndKeepTheirOrder) {
  std::vector<std::uint8_t> order;
  server_.handle([&](std::span<const std::uint8_t> request, std::span<std::uint8_t>) {
    order.push_back(request[0]);
    return std::optional<std::size_t>(0);
  });
  client_.emplace(open_host());
  session_ = client_->endpoint()
                 .connect(message::peer_address(Ipv4Address{{127, 0, 0, 1}}, server_.port()), {.ordered = true},
                          client_->now())
                 .session;
  std::deque<PendingCall> calls(250);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(i);
    ASSERT_EQ(calls[i].submit(*client_, {.session = session_, .message = {&byte, 1}}), message::CallStatus::ok);
  }
  serving_ = std::thread([this] { server_.run(); });
  asking_ = std::thread([this] { client_->run(); });
  for (PendingCall& call : calls) EXPECT_EQ(call.wait().status, message::MessageStatus::ok);
  end(server_, serving_);
  ASSERT_EQ(order.size(), calls.size());
  for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<std::uint8_t>(i));
}

class HostsThatWait : public Hosts, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(InTheEndpointAndForIt, HostsThatWait, ::testing::Bool());

TEST_P(HostsThatWait, EndCallsByCancellingPatienceAndTheirOwnEnd) {
  client_.emplace(open_host());
  session_ = connect(9);  // where nobody answers
  const auto taken = [&] { return client_->endpoint().request(session_, {}, {}, {}, client_->now()).status; };
  while (GetParam() && taken() == message::CallStatus::ok) {
  }
  std::deque<PendingCall> calls(200);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Call call{.session = session_, .message = bytes_of("anybody?")};
    if (i % 4 == 1) call.patience = Nanos{1'000'000};
    ASSERT_EQ(calls[i].submit(*client_, call), message::CallStatus::ok);
  }
  asking_ = std::thread([this] { client_->run(); });
  for (std::size_t i = 2; i < calls.size(); i += 4) EXPECT_TRUE(client_->cancel(calls[i].id()));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i % 4 == 1) {
      EXPECT_EQ(calls[i].wait().status, message::MessageStatus::deadline);
    }
    if (i % 4 == 2) {
      EXPECT_EQ(calls[i].wait().status, message::MessageStatus::cancelled);
    }
  }
  end(*client_, asking_);
  client_.reset();
  for (PendingCall& call : calls) {
    ASSERT_TRUE(call.done());
    EXPECT_EQ(call.wait().reach, message::Reach::never_sent);
  }
  EXPECT_EQ(calls[0].wait().status, message::MessageStatus::cancelled);
  EXPECT_EQ(calls[199].wait().status, message::MessageStatus::cancelled);
}

TEST_F(Hosts, EndCallsOfSessionsThatAreNotThere) {
  start();
  PendingCall call;
  ASSERT_EQ(call.submit(*client_, {.message = bytes_of("x")}), message::CallStatus::ok);
  EXPECT_EQ(call.wait().status, message::MessageStatus::peer_lost);
  EXPECT_EQ(call.wait().reach, message::Reach::never_sent);
}

TEST_F(Hosts, AreWokenByHandlersOnThreads) {
  ASSERT_TRUE(server_
                  .handle_on_threads({.threads = 2, .requests = 4},
                                     [](HandledRequest& request, unsigned) { request.answer = request.data; })
                  .ok());
  start();
  const std::string text(500, 'a');
  for (int i = 0; i < 100; ++i) {  // one at a time, so that both loops sleep while a handler runs
    std::array<std::uint8_t, 500> room;
    PendingCall call;
    ASSERT_EQ(
        call.submit(*client_, {.session = session_, .message = bytes_of(text), .response = {room.data(), room.size()}}),
        message::CallStatus::ok);
    EXPECT_EQ(call.wait().length, text.size());
  }
}

TEST_F(Hosts, TellHandlersWhatComesWithACall) {
  ASSERT_TRUE(server_
                  .handle_on_threads({},
                                     [](HandledRequest& request, unsigned) {
                                       const auto user = message::find_metadata(request.metadata, "user");
                                       request.answer = bytes_of(user.value_or("nobody"));
                                       request.answer_code = request.deadline == message::kNever ? 0 : 1;
                                     })
                  .ok());
  start();
  std::array<std::uint8_t, 64> told;
  message::MetadataWriter writer(told);
  ASSERT_TRUE(writer.add({"user", "alice"}));
  const auto ask = [&](std::span<const std::uint8_t> metadata, Nanos patience) {
    std::array<std::uint8_t, 100> room;
    PendingCall call;
    EXPECT_EQ(call.submit(*client_, {.session = session_,
                                     .message = bytes_of("who?"),
                                     .response = {room.data(), room.size()},
                                     .metadata = metadata,
                                     .patience = patience}),
              message::CallStatus::ok);
    const CallResult& result = call.wait();
    return std::pair(std::string(result.data, result.data + result.length), result.code);
  };
  EXPECT_EQ(ask(writer.bytes(), Nanos{30'000'000'000}), std::pair(std::string("alice"), std::uint16_t{1}));
  EXPECT_EQ(ask({}, message::kNever), std::pair(std::string("nobody"), std::uint16_t{0}));
  const std::vector<std::uint8_t> too_much(message::kMaxMetadataBytes + 1);
  PendingCall call;
  EXPECT_EQ(call.submit(*client_, {.session = session_, .metadata = too_much}), message::CallStatus::too_long);
}

TEST_F(Hosts, TellAListenerOfSessionsAndMessages) {
  std::vector<message::EventKind> kinds;
  server_.listen([&](const message::MessageEvent& event) {
    kinds.push_back(event.kind);
    if (event.kind == message::EventKind::message) server_.stop();
  });
  client_.emplace(open_host());
  session_ = connect(server_.port());
  const std::uint8_t byte = 1;
  ASSERT_EQ(client_->endpoint().send(session_, {&byte, 1}, {}, client_->now()).status, message::CallStatus::ok);
  asking_ = std::thread([this] { client_->run(); });
  server_.run();
  EXPECT_EQ(kinds, (std::vector{message::EventKind::accepted, message::EventKind::message}));
}

/// Two hosts in the one loop of somebody else, which sleeps without a bound: what does not make its descriptor readable
/// is never done.
TEST(MessageHostDescriptor, TellsALoopOfOnesOwnOfAllThatThereIsToDo) {
  MessageHost server = open_host();
  MessageHost client = open_host();
  server.handle(echo);
  const auto session = client.connect({Ipv4Address{{127, 0, 0, 1}}, server.port()});
  ASSERT_TRUE(session.ok());
  std::array<pollfd, 2> watched{{{*client.descriptor(), POLLIN, 0}, {*server.descriptor(), POLLIN, 0}}};
  ASSERT_TRUE(client.turn());
  ASSERT_TRUE(server.turn());

  std::atomic<int> ended{0};
  const auto count = [](void* context, std::uint64_t, const CallResult& result) {
    EXPECT_NE(result.status, message::MessageStatus::peer_lost);
    ++*static_cast<std::atomic<int>*>(context);
  };
  constexpr int kCalls = 300;
  // One beside them, for a port where nobody is: its patience has to wake the loop, too.
  const auto nobody = client.connect({Ipv4Address{{127, 0, 0, 1}}, 9});
  ASSERT_EQ(client.submit({.session = *nobody, .patience = Nanos{20'000'000}}, {count, &ended, 0}).status,
            message::CallStatus::ok);
  std::thread asking([&] {
    for (int i = 0; i < kCalls; ++i) {
      while (client.submit({.session = *session, .message = bytes_of("hello")}, {count, &ended, 0}).status !=
             message::CallStatus::ok)
        std::this_thread::yield();
      if (i % 7 == 0) std::this_thread::yield();
    }
  });
  while (ended != kCalls + 1) {
    ::poll(watched.data(), watched.size(), -1);
    if (watched[0].revents != 0) {
      ASSERT_TRUE(client.turn());
    }
    if (watched[1].revents != 0) {
      ASSERT_TRUE(server.turn());
    }
  }
  asking.join();
}

}  // namespace
}  // namespace warpline::rpc
