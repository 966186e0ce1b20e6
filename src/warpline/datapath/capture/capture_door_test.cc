// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/capture_door.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/scratch_folder_testing.h"
#include "warpline/base/time/clock.h"
#include "warpline/capture/attached/attached_capture.h"
#include "warpline/capture/packet_times.h"

namespace warpline::datapath {
namespace {

using capture::AttachedCapture;

/// A door of a run with one path, of whose thread this is all there is.
class CaptureDoorTest : public testing::Test {
 protected:
  CaptureDoorTest() {
    turns_.add();
    auto door = CaptureDoor::open(socket_, taps_);
    EXPECT_TRUE(door) << door.error().message();
    door_ = *std::move(door);
  }
  ~CaptureDoorTest() override { door_->end(); }

  /// The settings of a capture to a file of this name.
  [[nodiscard]] capture::CaptureSettings to(const std::string& file) const { return {.file = folder_.path() / file}; }

  /// Attaches while the run looks at its door.
  Result<std::unique_ptr<AttachedCapture>> attach(const capture::CaptureSettings& settings) {
    Result<std::unique_ptr<AttachedCapture>> opened = usage_error("", "");
    std::atomic<bool> done{false};
    std::thread other([&] {
      opened = AttachedCapture::open(socket_, settings, "test");
      done.store(true);
    });
    while (!done.load()) door_->poll();
    other.join();
    return opened;
  }
  /// The path's thread drops a packet of these bytes.
  void drop(const std::string& bytes, Verdict verdict = Verdict::runt) {
    capture::CaptureSource* const source = paths_.front()->capture.load();
    if (source == nullptr) return;
    capture::CapturedPacket* const packet = source->begin(verdict);
    if (packet == nullptr) return;
    bytes.copy(reinterpret_cast<char*>(packet->bytes()), bytes.size());
    const auto length = static_cast<std::uint32_t>(bytes.size());
    *packet = {.ticks = ticks_now(), .length = length, .captured = length, .verdict = verdict};
    source->end(*packet);
  }
  /// Ends a capture from its own side, and writes all that there is.
  void finish(AttachedCapture& capture) {
    capture.stop();
    while (!capture.ended()) {
      turns_.add();
      door_->poll();
    }
    while (capture.write_some(SIZE_MAX) != 0) {
    }
  }

  ScratchFolder folder_;
  std::string socket_ = folder_.path() / "door";
  std::vector<std::unique_ptr<QueuePath>> paths_{[] {
    std::vector<std::unique_ptr<QueuePath>> one;
    one.push_back(std::make_unique<QueuePath>());
    return one;
  }()};
  TurnCount turns_;
  PathTaps taps_{{}, paths_, {&turns_}, false};
  std::unique_ptr<CaptureDoor> door_;
};

TEST_F(CaptureDoorTest, WhatIsDroppedWhileSomebodyIsAttachedIsWritten) {
  drop("before");
  auto capture = attach(to("a.pcapng"));
  ASSERT_TRUE(capture) << capture.error().message();
  drop("first", Verdict::no_route);
  finish(**capture);
  drop("after");
  const auto totals = (*capture)->totals();
  ASSERT_TRUE(totals) << totals.error().message();
  // The run has no port here, so no packet has an interface.
  EXPECT_EQ(totals->packets, 0U);
  EXPECT_TRUE(taps_.is_free());
}

TEST_F(CaptureDoorTest, NoThreadUsesSourcesOnceTheyAreGone) {
  auto capture = attach(to("a.pcapng"));
  ASSERT_TRUE(capture);
  (*capture)->stop();
  for (int i = 0; i < 100; ++i) door_->poll();
  EXPECT_EQ(paths_.front()->capture.load(), nullptr);
  EXPECT_FALSE((*capture)->ended());  // the thread may still be in the turn in which it saw them
  turns_.add();
  door_->poll();
  EXPECT_FALSE((*capture)->ended());
  turns_.add();
  door_->poll();
  EXPECT_TRUE((*capture)->ended());
}

TEST_F(CaptureDoorTest, OneAtATime) {
  auto first = attach(to("a.pcapng"));
  ASSERT_TRUE(first);
  const auto second = attach(to("b.pcapng"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::environment);
  EXPECT_EQ(second.error().why, "another capture or trace of it goes on");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "b.pcapng"));
  finish(**first);
  auto third = attach(to("b.pcapng"));
  EXPECT_TRUE(third);
}

TEST_F(CaptureDoorTest, WhoGoesWithoutAWordLeavesTheDoorOpen) {
  {
    auto capture = attach(to("a.pcapng"));
    ASSERT_TRUE(capture);
  }
  for (int i = 0; i < 3; ++i) {
    door_->poll();
    turns_.add();
  }
  EXPECT_TRUE(attach(to("b.pcapng")));
}

TEST_F(CaptureDoorTest, WhatFindsNoPlaceIsCountedByReason) {
  auto capture = attach(to("a.pcapng"));
  ASSERT_TRUE(capture);
  const std::size_t slots = capture::RingShape::within(std::size_t{4} << 20, 256).slots;
  for (std::size_t i = 0; i < slots + 5; ++i) drop("frame", i < slots ? Verdict::runt : Verdict::giant);
  finish(**capture);
  const auto totals = (*capture)->totals();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->ring_full, 5U);
  EXPECT_EQ(totals->left_out_drops[static_cast<std::size_t>(Verdict::giant)], 5U);
}

TEST_F(CaptureDoorTest, AFilter) {
  capture::CaptureSettings settings = to("a.pcapng");
  settings.filter = "ether[0] = 0x61";
  auto capture = attach(settings);
  ASSERT_TRUE(capture) << capture.error().message();
  drop("a frame");
  drop("b frame");
  finish(**capture);
  EXPECT_EQ((*capture)->totals()->filtered, 1U);
}

TEST_F(CaptureDoorTest, ARunThatEndsSaysWhatWasLeftOut) {
  auto capture = attach(to("a.pcapng"));
  ASSERT_TRUE(capture);
  door_->end();
  EXPECT_TRUE((*capture)->ended());
  EXPECT_TRUE((*capture)->totals());
}

TEST_F(CaptureDoorTest, OneThatIsKilledDoesNot) {
  auto capture = attach(to("a.pcapng"));
  ASSERT_TRUE(capture);
  taps_.end();
  door_.reset();
  EXPECT_TRUE((*capture)->ended());
  ASSERT_FALSE((*capture)->totals());
  EXPECT_EQ((*capture)->totals().error().kind, ErrorKind::peer);
  door_ = *CaptureDoor::open(socket_, taps_);  // over what is left there
}

TEST_F(CaptureDoorTest, WhatIsNoRequestIsRefused) {
  auto stranger = capture::AttachSocket::connect(socket_);
  ASSERT_TRUE(stranger);
  ASSERT_TRUE(stranger->send(std::vector<std::uint8_t>(100, 7)));
  door_->poll();
  const auto answer = stranger->receive();
  ASSERT_TRUE(answer.bytes);
  EXPECT_EQ(capture::read_refusal(*answer.bytes), "it is of another version than what attaches to it");
  EXPECT_TRUE(attach(to("a.pcapng")));
}

TEST_F(CaptureDoorTest, PathsWithoutStagesToTraceRefuseATrace) {
  auto stranger = capture::AttachSocket::connect(socket_);
  ASSERT_TRUE(stranger);
  ASSERT_TRUE(stranger->send(
      capture::to_bytes(capture::AttachRequest{.traces = true, .snaplen = sizeof(capture::PacketTimes)})));
  door_->poll();
  const auto answer = stranger->receive();
  ASSERT_TRUE(answer.bytes);
  EXPECT_TRUE(capture::read_refusal(*answer.bytes));
  EXPECT_TRUE(taps_.is_free());
}

TEST_F(CaptureDoorTest, NobodyIsThere) {
  const auto capture = AttachedCapture::open(folder_.path() / "no", to("a.pcapng"), "test");
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().kind, ErrorKind::environment);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "a.pcapng"));
}

}  // namespace
}  // namespace warpline::datapath
