// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/loop_descriptor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "warpline/transport/wake_up.h"

namespace warpline::transport {
namespace {

/// A loop by the descriptor of a socket that a test fills and drains from its other end.
class Loop : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_.data()), 0);
    wake_ = std::move(WakeUp::make()).value();
    auto made = LoopDescriptor::make(ends_[0], wake_->descriptor());
    ASSERT_TRUE(made.ok()) << made.error().message();
    loop_ = std::move(made).value();
  }
  void TearDown() override {
    for (const int end : ends_) ::close(end);
  }
  /// `patience` in ms; -1: until it is readable.
  [[nodiscard]] bool readable(int patience = 0) const {
    pollfd watched{loop_->get(), POLLIN, 0};
    return ::poll(&watched, 1, patience) == 1;
  }

  std::array<int, 2> ends_{};
  std::unique_ptr<WakeUp> wake_;
  std::unique_ptr<LoopDescriptor> loop_;
};

TEST_F(Loop, IsReadableWithItsTransportAndWhoWakes) {
  loop_->arm(Nanos{5}, message::kNever, false);
  EXPECT_FALSE(readable());
  char byte = 1;
  ASSERT_EQ(::write(ends_[1], &byte, 1), 1);
  EXPECT_TRUE(readable());
  ASSERT_EQ(::read(ends_[0], &byte, 1), 1);
  EXPECT_FALSE(readable());
  ASSERT_TRUE(wake_->begin_sleep());
  wake_->wake();
  EXPECT_TRUE(readable());
  wake_->end_sleep();
  EXPECT_FALSE(readable());
}

TEST_F(Loop, IsReadableWhenATransportThatWasBlockedIsWritable) {
  std::array<char, 4096> bytes{};
  while (::write(ends_[0], bytes.data(), bytes.size()) > 0) continue;
  loop_->arm(Nanos{5}, message::kNever, true);
  EXPECT_FALSE(readable());
  while (::read(ends_[1], bytes.data(), bytes.size()) > 0) continue;
  EXPECT_TRUE(readable());
  loop_->arm(Nanos{5}, message::kNever, false);
  EXPECT_FALSE(readable());
}

TEST_F(Loop, IsReadableWhenATimeHasComeUntilItIsArmedAgain) {
  loop_->arm(Nanos{5}, Nanos{1}, false);  // in the past: at once
  EXPECT_TRUE(readable(-1));
  loop_->arm(Nanos{10}, message::kNever, false);
  EXPECT_FALSE(readable());
  loop_->arm(Nanos{20}, Nanos{1'000'020}, false);  // sooner than what it was armed for
  EXPECT_TRUE(readable(-1));
}

}  // namespace
}  // namespace warpline::transport
