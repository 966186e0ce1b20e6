// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "warpline/base/scratch_folder_testing.h"
#include "warpline/base/time/clock.h"
#include "warpline/capture/pcapng_testing.h"

namespace warpline::capture {
namespace {

const std::vector<CaptureInterface> kPorts = {{3, "left"}, {1, "right"}};

void take(CaptureSource& source, const std::string& bytes, Verdict verdict, std::uint16_t port = 3,
          std::uint64_t ticks = ticks_now()) {
  CapturedPacket* const packet = source.begin(verdict);
  if (packet == nullptr) return;
  packet->ticks = ticks;
  packet->length = static_cast<std::uint32_t>(bytes.size());
  packet->captured = std::min(packet->length, source.snaplen());
  std::copy_n(bytes.begin(), packet->captured, packet->bytes());
  packet->port = port;
  packet->queue = 2;
  packet->verdict = verdict;
  packet->direction = Direction::inbound;
  source.end(*packet);
}

class CaptureTest : public testing::Test {
 protected:
  std::unique_ptr<Capture> open(CaptureSettings settings = {}, std::size_t sources = 1) {
    settings.file = folder_.path() / "a.pcapng";
    auto capture = Capture::open(settings, kPorts, sources, "test");
    EXPECT_TRUE(capture) << capture.error().message();
    return *std::move(capture);
  }
  [[nodiscard]] std::vector<ReadPacket> found() const { return read_packets(folder_.path() / "a.pcapng"); }

  ScratchFolder folder_;
};

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

TEST_F(CaptureTest, WritesWhatSourcesTake) {
  const auto capture = open({}, 2);
  const std::uint64_t before = now_ns();
  capture->start();
  take(*capture->sources()[0], "first frame", Verdict::no_route);
  take(*capture->sources()[1], "second", Verdict::forward, 1);
  capture->finish();
  const std::uint64_t after = now_ns();
  const std::vector<ReadPacket> packets = found();
  ASSERT_EQ(packets.size(), 2U);
  const auto& first = *std::ranges::find(packets, "first frame", &ReadPacket::bytes);
  const auto& second = *std::ranges::find(packets, "second", &ReadPacket::bytes);
  EXPECT_EQ(first.interface, 0U);
  EXPECT_EQ(second.interface, 1U);
  EXPECT_EQ(first.comment, "no_route: no route leads to its destination");
  EXPECT_EQ(first.direction, 1U);
  EXPECT_EQ(first.queue, 2U);
  EXPECT_EQ(first.length, 11U);
  EXPECT_EQ(second.comment, "");
  for (const ReadPacket& packet : packets) {  // the two clocks are compared to some microseconds
    EXPECT_GT(packet.time_ns + 1'000'000, before);
    EXPECT_LT(packet.time_ns, after + 1'000'000);
  }
  const CaptureTotals totals = capture->totals();
  EXPECT_EQ(totals.packets, 2U);
  EXPECT_EQ(totals.bytes, 17U);
  EXPECT_EQ(totals.drops[static_cast<std::size_t>(Verdict::no_route)], 1U);
  EXPECT_EQ(totals.drops[static_cast<std::size_t>(Verdict::forward)], 0U);
  EXPECT_EQ(totals.left_out() + totals.filtered + totals.overwritten, 0U);
  EXPECT_EQ(totals.files, std::vector<std::string>{folder_.path() / "a.pcapng"});
  EXPECT_EQ(totals.failure, "");
}

TEST_F(CaptureTest, TheOldestOfAllSourcesIsWrittenFirst) {
  const auto capture = open({}, 3);
  const std::uint64_t now = ticks_now();
  for (std::size_t i = 0; i < 60; ++i)
    take(*capture->sources()[i * i % 3], std::to_string(i), Verdict::runt, 1, now + i);
  capture->start();
  capture->finish();
  const std::vector<ReadPacket> packets = found();
  ASSERT_EQ(packets.size(), 60U);
  for (std::size_t i = 0; i < packets.size(); ++i) EXPECT_EQ(packets[i].bytes, std::to_string(i));
}

TEST_F(CaptureTest, KeepsTheFirstBytesOnly) {
  const auto capture = open({.snaplen = 16});
  capture->start();
  take(*capture->sources()[0], std::string(100, 'x'), Verdict::runt);
  capture->finish();
  ASSERT_EQ(found().size(), 1U);
  EXPECT_EQ(found()[0].bytes, std::string(16, 'x'));
  EXPECT_EQ(found()[0].length, 100U);
}

TEST_F(CaptureTest, NoPacketIsInTwoPages) {
  const auto capture = open({.snaplen = 1500});
  capture->start();
  std::size_t taken = 0;
  for (std::size_t length = 14; length <= 1500; length += 7)
    for (const Verdict verdict : {Verdict::forward, Verdict::runt, Verdict::no_route}) {
      take(*capture->sources()[0], std::string(length, 'x'), verdict);
      ++taken;
    }
  capture->finish();
  const std::vector<ReadPacket> packets = found();
  EXPECT_EQ(packets.size(), taken);
  for (const ReadPacket& packet : packets) {
    EXPECT_EQ(packet.begin / CaptureFiles::kPiece, (packet.end - 1) / CaptureFiles::kPiece) << packet.begin;
  }
}

TEST_F(CaptureTest, WhatFindsNoSlotIsCountedByReason) {
  const auto capture = open();
  CaptureSource& source = *capture->sources()[0];
  const std::size_t slots = RingShape::within(std::size_t{4} << 20, 256).slots;  // as of one source
  for (std::size_t i = 0; i < slots + 5; ++i) take(source, "frame", i < slots ? Verdict::runt : Verdict::giant);
  capture->start();
  capture->finish();
  const CaptureTotals totals = capture->totals();
  EXPECT_EQ(totals.packets, slots);
  EXPECT_EQ(found().size(), slots);
  EXPECT_EQ(totals.ring_full, 5U);
  EXPECT_EQ(totals.left_out_drops[static_cast<std::size_t>(Verdict::giant)], 5U);
}

TEST_F(CaptureTest, AFilterIsAskedBeforeWhatIsLeftOutIsCounted) {
  const auto capture = open({.filter = "ether[0] = 0x61"});
  CaptureSource& source = *capture->sources()[0];
  const std::size_t slots = RingShape::within(std::size_t{4} << 20, 256).slots;  // as of one source
  for (std::size_t i = 0; i < slots + 5; ++i) {
    take(source, "a frame", Verdict::runt);
    take(source, "b frame", Verdict::runt);
  }
  capture->start();
  capture->finish();
  const CaptureTotals totals = capture->totals();
  EXPECT_EQ(totals.packets, slots);
  EXPECT_EQ(totals.ring_full, 5U);
  EXPECT_EQ(totals.filtered, slots + 5);
}

TEST_F(CaptureTest, TakesASample) {
  const auto capture = open({.what = {.dropped_only = false, .one_in = 10}});
  capture->start();
  for (int i = 1; i <= 105; ++i) take(*capture->sources()[0], std::to_string(i), Verdict::forward);
  capture->finish();
  const std::vector<ReadPacket> packets = found();
  ASSERT_EQ(packets.size(), 10U);
  for (std::size_t i = 0; i < packets.size(); ++i) EXPECT_EQ(packets[i].bytes, std::to_string(10 * (i + 1)));
}

TEST_F(CaptureTest, FilesTakeTurnsBelowTheLimit) {
  constexpr std::uint64_t kBytes = 256 << 10;
  const auto capture = open({.snaplen = 1000, .limit = kBytes});
  CaptureSource& source = *capture->sources()[0];
  capture->start();
  constexpr std::size_t kPackets = 1000;  // of 1 KiB
  for (std::size_t i = 0; i < kPackets; ++i) take(source, std::string(1000, 'x'), Verdict::runt);
  capture->finish();
  const CaptureTotals totals = capture->totals();
  EXPECT_EQ(totals.packets + totals.left_out(), kPackets);
  std::size_t in_files = 0;
  std::uint64_t bytes = 0;
  for (const std::string& file : totals.files) {
    in_files += read_packets(file).size();
    bytes += std::filesystem::file_size(file);
  }
  EXPECT_EQ(totals.files.size(), 4U);
  EXPECT_LE(bytes, kBytes);
  EXPECT_GT(totals.overwritten, 0U);
  EXPECT_EQ(in_files + totals.overwritten, totals.packets);
}

TEST_F(CaptureTest, WhatADiskDoesNotTakeIsCountedAndEndsNothing) {
  const auto capture = open();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  capture->start();
  for (int i = 0; i < 1000; ++i) take(*capture->sources()[0], std::string(100, 'x'), Verdict::runt);
  capture->finish();
  setrlimit(RLIMIT_FSIZE, &before);
  const CaptureTotals totals = capture->totals();
  EXPECT_GT(totals.packets, 0U);
  EXPECT_GT(totals.write_failed, 0U);
  EXPECT_EQ(totals.packets + totals.write_failed, 1000U);
  EXPECT_EQ(found().size(), totals.packets);
  EXPECT_EQ(totals.left_out_drops[static_cast<std::size_t>(Verdict::runt)], totals.write_failed);
  EXPECT_EQ(totals.failure, "File too large");
}

TEST_F(CaptureTest, AFilterThatIsWrongMakesNoFile) {
  const std::string file = folder_.path() / "b.pcapng";
  const auto capture = Capture::open({.file = file, .filter = "nonsense here"}, kPorts, 1, "test");
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().kind, ErrorKind::usage);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace warpline::capture
