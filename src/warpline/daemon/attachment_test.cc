// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/attachment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <limits>

#include "warpline/daemon/raw_client_testing.h"

namespace warpline::daemon {
namespace {

using client::Operation;
using client::Submission;

constexpr ClientLimits kFew{.calls = 4, .requests = 3, .sessions = 2, .message_bytes = 100};

TEST(Area, RoomsDoNotOverlapAndEndWithTheArea) {
  for (const std::uint32_t bytes : {1U, 64U, 65U, 4096U, 1U << 20}) {
    const client::AreaFacts facts = area_facts({.calls = 5, .requests = 7, .sessions = 3, .message_bytes = bytes});
    const client::AreaLayout layout = client::AreaLayout::of(facts);
    EXPECT_GE(layout.completions, layout.submissions + facts.submissions * sizeof(Submission));
    EXPECT_GE(layout.rooms, layout.completions + facts.completions * sizeof(client::AreaCompletion));
    std::uint64_t end = layout.rooms;
    for (std::uint32_t slot = 0; slot < 12; ++slot) {
      for (const bool back : {false, true}) {
        EXPECT_GE(layout.room(slot, back), end);
        end = layout.room(slot, back) + bytes;
      }
    }
    EXPECT_LE(end, layout.bytes);
  }
}

TEST(Attachment, TakesWhatWasSubmittedInOrder) {
  RawClient client(kFew);
  EXPECT_FALSE(client.daemon->has_submissions());
  for (std::uint64_t i = 0; i < 1000; ++i) {
    client.listen(static_cast<std::uint16_t>(i), 1, i);
    EXPECT_TRUE(client.daemon->has_submissions());
    const auto taken = client.daemon->take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->tag, i);
  }
  EXPECT_FALSE(client.daemon->take());
  EXPECT_EQ(client.daemon->misdeed(), Misdeed::none);
}

/// Each is one word in a ring or descriptor that no library writes.
TEST(Attachment, AnIndexThatIsTooFarIsABadRing) {
  const std::function<void(RawClient&)> lies[] = {
      [](RawClient& client) { client.indices->submission_tail = client.daemon->facts().submissions + 1; },
      [](RawClient& client) { client.indices->submission_tail = 0xffffffff; },
      [](RawClient& client) {
        client.listen(1, 1);
        client.indices->completion_head = 1;
      },
      [](RawClient& client) {
        client.listen(1, 1);
        client.indices->completion_head = 0x80000000;
      },
  };
  for (const auto& lie : lies) {
    RawClient client(kFew);
    lie(client);
    EXPECT_FALSE(client.daemon->take());
    EXPECT_EQ(client.daemon->misdeed(), Misdeed::bad_ring);
    EXPECT_FALSE(client.daemon->has_submissions());
    client.listen(1, 1);
    EXPECT_FALSE(client.daemon->take()) << "nothing is believed any more";
  }
}

TEST(Attachment, ADescriptorThatIsOutOfBoundsIsRefused) {
  constexpr std::uint32_t kHuge = std::numeric_limits<std::uint32_t>::max();
  const auto make = [](Operation operation) {
    Submission submission;
    submission.operation = operation;
    submission.port = 7;
    submission.length = 1;
    return submission;
  };
  const auto with = [&](Operation operation, auto change) {
    Submission submission = make(operation);
    change(submission);
    return submission;
  };
  const Submission lies[] = {
      make(static_cast<Operation>(0)),
      make(static_cast<Operation>(9)),
      make(static_cast<Operation>(255)),
      with(Operation::connect, [](Submission& s) { s.session = kFew.sessions; }),
      with(Operation::connect, [](Submission& s) { s.session = kHuge; }),
      with(Operation::connect, [](Submission& s) { s.port = 0; }),
      with(Operation::close, [](Submission& s) { s.session = kHuge; }),
      with(Operation::request, [](Submission& s) { s.slot = kFew.calls; }),
      with(Operation::request, [](Submission& s) { s.slot = kHuge; }),
      with(Operation::request, [](Submission& s) { s.session = kFew.sessions; }),
      with(Operation::request, [](Submission& s) { s.length = kFew.message_bytes + 1; }),
      with(Operation::request, [](Submission& s) { s.length = kHuge; }),
      with(Operation::send, [](Submission& s) { s.slot = kHuge; }),
      with(Operation::send, [](Submission& s) { s.length = kHuge; }),
      with(Operation::cancel, [](Submission& s) { s.slot = kFew.calls; }),
      with(Operation::listen, [](Submission& s) { s.length = 0; }),
      with(Operation::listen, [](Submission& s) { s.length = 0x10001; }),
      with(Operation::listen, [](Submission& s) { s.length = kHuge; }),
      with(Operation::listen, [](Submission& s) { s.code = 0xffff, s.length = 2; }),
      with(Operation::answer, [](Submission& s) { s.slot = kFew.requests; }),
      with(Operation::answer, [](Submission& s) { s.slot = kHuge; }),
      make(Operation::answer),  // nothing was asked
      make(Operation::release),
      with(Operation::release, [](Submission& s) { s.slot = kHuge; }),
  };
  for (const Submission& lie : lies) {
    RawClient client(kFew);
    client.submit(lie);
    EXPECT_FALSE(client.daemon->take()) << static_cast<int>(lie.operation) << " slot " << lie.slot;
    EXPECT_EQ(client.daemon->misdeed(), Misdeed::bad_descriptor);
  }
}

TEST(Attachment, WhatIsInUseCannotBeUsedAgain) {
  RawClient client(kFew);
  client.daemon->calls[1].busy = true;
  client.request(1, "x");
  EXPECT_FALSE(client.daemon->take());
  EXPECT_EQ(client.daemon->misdeed(), Misdeed::bad_descriptor);

  RawClient other(kFew);
  other.daemon->sessions[1].open = true;
  other.connect(1, message::peer_address(Ipv4Address{{10, 0, 0, 1}}, 1));
  EXPECT_FALSE(other.daemon->take());
  EXPECT_EQ(other.daemon->misdeed(), Misdeed::bad_descriptor);

  using State = Attachment::Request::State;
  for (const State state : {State::free, State::waiting, State::answering}) {
    RawClient answering(kFew);
    answering.daemon->requests[0].state = state;
    answering.answer(0, "x");
    EXPECT_FALSE(answering.daemon->take());
  }
  RawClient one_way(kFew);
  one_way.daemon->requests[0] = {.state = State::with_client, .one_way = true};
  one_way.answer(0, "a message has no answer");
  EXPECT_FALSE(one_way.daemon->take());
}

TEST(Attachment, WhoReadsNothingIsNotServedAndLosesNothing) {
  RawClient client(kFew);
  std::uint64_t submitted = 0;
  std::uint64_t taken = 0;
  for (int round = 0; round < 100; ++round) {
    while (client.indices->submission_tail - client.daemon->facts().submissions != client.indices->submission_head)
      client.listen(1, 1, submitted++);
    while (client.daemon->take()) client.daemon->publish({.tag = taken++});
    client.daemon->notify();
  }
  // What was begun may still end: there is room for that.
  const std::uint32_t kept = kFew.calls + 2 * kFew.sessions + 2 * kFew.requests;
  EXPECT_EQ(taken, client.daemon->facts().completions - kept);
  for (std::uint32_t i = 0; i < kept; ++i) client.daemon->publish({.tag = taken++});
  EXPECT_EQ(client.daemon->misdeed(), Misdeed::none);
  client.daemon->notify();
  EXPECT_FALSE(client.daemon->has_submissions());
  const auto all = client.poll();
  ASSERT_EQ(all.size(), taken);
  for (std::uint64_t i = 0; i < taken; ++i) EXPECT_EQ(all[i].tag, i);
  EXPECT_TRUE(client.daemon->has_submissions());
}

/// What the daemon has taken and not told of yet is still taken for the client.
TEST(Attachment, WhoSawItsRingFullIsWokenWhenItIsNot) {
  RawClient client(kFew);
  const std::uint32_t size = client.daemon->facts().submissions;
  for (std::uint32_t i = 0; i + 1 < size; ++i) client.simple(Operation::close, 0, 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.daemon->take());
  client.simple(Operation::close, 0, 0);
  client.indices->client_sleeps = 1;
  while (client.daemon->take()) {
  }
  client.daemon->notify();
  EXPECT_EQ(client.indices->submission_head, size);
  EXPECT_EQ(client.indices->client_sleeps, 0U) << "nobody else has to wake it";
  char byte = 0;
  EXPECT_EQ(::recv(client.socket, &byte, 1, MSG_DONTWAIT), 1);
  // What it did not wait for wakes nobody.
  client.simple(Operation::close, 0, 0);
  client.indices->client_sleeps = 1;
  ASSERT_TRUE(client.daemon->take());
  client.daemon->notify();
  EXPECT_EQ(client.indices->client_sleeps, 1U);
}

TEST(Attachment, AHeadThatGoesBackIsFoundBeforeAnythingIsOverwritten) {
  RawClient client(kFew);
  const std::uint32_t size = client.daemon->facts().completions;
  for (std::uint32_t i = 0; i < size; ++i) {
    client.daemon->publish({.tag = i});
    client.indices->completion_head = 0;
  }
  EXPECT_EQ(client.daemon->misdeed(), Misdeed::none);
  client.daemon->publish({.tag = 4711});
  EXPECT_EQ(client.daemon->misdeed(), Misdeed::bad_ring);
  client.daemon->notify();
  EXPECT_EQ(client.indices->completion_tail, size);
}

TEST(Attachment, AMessageThatWasTakenStaysAsItWas) {
  RawClient client(kFew);
  client.request(2, "as it was");
  const auto taken = client.daemon->take();
  ASSERT_TRUE(taken);
  const message::ConstBuffer staged = client.daemon->stage_call(taken->slot, taken->length);
  std::memcpy(client.at(client.layout.room(2, false)), "scribbled", 9);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(staged.data), staged.length), "as it was");
}

TEST(Attachment, TheAreaCannotBeCutOff) {
  RawClient client(kFew);
  ASSERT_TRUE(client.daemon->welcome());
  client::Welcome welcome;
  iovec part{&welcome, sizeof(welcome)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ASSERT_EQ(::recvmsg(client.socket, &message, 0), static_cast<ssize_t>(sizeof(welcome)));
  ASSERT_NE(CMSG_FIRSTHDR(&message), nullptr);
  int area = -1;
  std::memcpy(&area, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(area));
  ASSERT_GE(area, 0);
  struct stat facts{};
  ASSERT_EQ(::fstat(area, &facts), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(facts.st_size), client.layout.bytes);
  EXPECT_EQ(::ftruncate(area, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(area, facts.st_size + 4096), -1);
  EXPECT_EQ(::fcntl(area, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
  // A hole reads as zeros, and what is written there stays: nobody gets SIGBUS.
  EXPECT_EQ(::fallocate(area, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, facts.st_size), 0);
  client.listen(3, 1, 5);
  const auto taken = client.daemon->take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->tag, 5U);
  ::close(area);
}

TEST(Attachment, BytesOnTheSocketOnlyWake) {
  RawClient client(kFew);
  for (int i = 0; i < 40; ++i) {
    char text[128] = "anything of any length";
    ASSERT_GT(::send(client.socket, text, static_cast<std::size_t>(1 + 3 * i), MSG_DONTWAIT), 0);
  }
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client.daemon->read_socket());
  client.hang_up();
  EXPECT_FALSE(client.daemon->read_socket());
  client.indices->client_sleeps = 1;
  client.daemon->publish({});
  client.daemon->notify();  // to nobody: no SIGPIPE
}

TEST(Attachment, WhoDoesNotReadItsSocketHoldsNobodyUp) {
  RawClient client(kFew);
  client.indices->client_sleeps = 1;
  for (int i = 0; i < 5000; ++i) {
    client.daemon->publish({});
    client.daemon->notify();
    client.indices->completion_head = client.indices->completion_tail;
  }
  EXPECT_EQ(client.daemon->misdeed(), Misdeed::none);
}

}  // namespace
}  // namespace warpline::daemon
