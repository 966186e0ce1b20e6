// SPDX-License-Identifier: Apache-2.0
#include "vnic/engine/engine.h"

#include <gtest/gtest.h>

#include <mutex>

#include "vnic/engine/engine_testing.h"

namespace warpline::vnic {
namespace {

TEST(Engine, CarriesAFrameRound) {
  TestPort port;
  port.refill();
  const Bytes frame = numbered_frame(1, 64);
  EXPECT_EQ(port.send(frame), 1U);
  EXPECT_EQ(port.receive(), 1U);
  const auto received = port.harvest();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->bytes, frame);
  EXPECT_EQ(port.count(Count::tx_packets), 1U);
  EXPECT_EQ(port.count(Count::tx_bytes), 64U);
  EXPECT_FALSE(port.harvest());
}

TEST(Engine, ReportsOnlyWhereAsked) {
  TestPort port;
  for (std::uint32_t i = 0; i < 8; ++i) port.post(numbered_frame(i, 60), 1, i % 4 == 3 ? std::uint64_t{kTxReport} : 0);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 8U);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(port.reported(i), i % 4 == 3) << i;
}

TEST(Engine, ReportsARingThatWasPostedWhole) {
  TestPort port;
  for (std::uint32_t i = 0; i < 64; ++i) port.post(numbered_frame(i, 60), 1, kTxReport);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 64U);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_TRUE(port.reported(i)) << i;
}

TEST(Engine, ReportsFramesThatAreCopiedFirst) {
  Devargs args;
  args.faults.loss = 1;
  TestPort port(args);
  for (std::uint32_t i = 0; i < 100; ++i) {
    port.post(numbered_frame(i, 60), 1 + i % 2, kTxReport);
    port.doorbell();
    EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 1U);
    EXPECT_TRUE(port.reported(port.tx().fetched - 1)) << i;
  }
}

TEST(Engine, GathersPieces) {
  for (std::uint32_t pieces = 1; pieces <= 40; ++pieces) {
    TestPort port;
    port.refill();
    const Bytes frame = numbered_frame(pieces, 1500);
    port.post(frame, pieces, kTxReport);
    port.doorbell();
    EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 1U);
    for (std::uint32_t i = 0; i < pieces; ++i) EXPECT_TRUE(port.reported(i));
    ASSERT_EQ(port.receive(), 1U);
    EXPECT_EQ(port.harvest()->bytes, frame);
  }
}

TEST(Engine, WaitsForTheEndOfAFrame) {
  TestPort port;
  port.refill();
  const Bytes frame = numbered_frame(1, 100);
  std::memcpy(port.tx_buffer(0), frame.data(), 50);
  port.post_raw(reinterpret_cast<std::uintptr_t>(port.tx_buffer(0)), 50);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 0U);
  std::memcpy(port.tx_buffer(1), frame.data() + 50, 50);
  port.post_raw(reinterpret_cast<std::uintptr_t>(port.tx_buffer(1)), 50 | kTxEnd);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 1U);
  ASSERT_EQ(port.receive(), 1U);
  EXPECT_EQ(port.harvest()->bytes, frame);
}

TEST(Engine, DropsWhatItCannotFollow) {
  TestPort port;
  port.refill();
  const auto buffer = reinterpret_cast<std::uintptr_t>(port.tx_buffer(0));
  port.post_raw(buffer, 0 | kTxEnd | kTxReport);
  port.post_raw(buffer, (kMaxFrame + 1) | kTxEnd);
  port.post_raw(buffer, 60 | kTxEnd | kTxIpSum);  // no IP there
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 0U);
  EXPECT_EQ(port.count(Count::tx_malformed), 3U);
  EXPECT_TRUE(port.reported(0));
  EXPECT_EQ(port.send(numbered_frame(1, 60)), 1U);
}

TEST(Engine, DropsAFrameWithoutEndWithinTheRing) {
  TestPort port;
  port.refill();
  const auto buffer = reinterpret_cast<std::uintptr_t>(port.tx_buffer(0));
  for (int i = 0; i < 64; ++i) port.post_raw(buffer, 10 | kTxReport);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 0U);
  EXPECT_TRUE(port.reported(63));
  port.post_raw(buffer, 10);
  port.post_raw(buffer, 10 | kTxEnd);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 0U);
  EXPECT_EQ(port.count(Count::tx_malformed), 1U);
  EXPECT_EQ(port.send(numbered_frame(1, 60)), 1U);
  EXPECT_EQ(port.count(Count::tx_malformed), 1U);
}

TEST(Engine, TouchesNoMemoryThatIsNotMapped) {
  TestPort port;
  port.refill();
  static std::uint8_t foreign[64];
  port.post_raw(reinterpret_cast<std::uintptr_t>(foreign), 60 | kTxEnd);
  port.post_raw(16, 60 | kTxEnd);
  port.post_raw(reinterpret_cast<std::uintptr_t>(port.tx_buffer(0)), 20);
  port.post_raw(reinterpret_cast<std::uintptr_t>(foreign), 60 | kTxEnd);
  port.doorbell();
  EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 0U);
  EXPECT_EQ(port.count(Count::tx_iommu_fault), 3U);

  ASSERT_EQ(port.send(numbered_frame(1, 60)), 1U);
  RxDescriptor& next = port.rx().ring[0];
  const std::uint64_t good = next.address;
  next.address = reinterpret_cast<std::uintptr_t>(foreign);
  EXPECT_EQ(port.receive(), 0U);
  EXPECT_EQ(port.count(Count::rx_iommu_fault), 1U);
  next.address = good;
  ASSERT_EQ(port.send(numbered_frame(2, 60)), 1U);
  EXPECT_EQ(port.receive(), 1U);
}

TEST(Engine, WaitsForDescriptors) {
  TestPort port;
  ASSERT_EQ(port.send(numbered_frame(1, 60)), 1U);
  EXPECT_EQ(port.receive(), 0U);
  port.refill(1);
  ASSERT_EQ(port.send(numbered_frame(2, 60)), 1U);
  EXPECT_EQ(port.receive(), 1U);
  EXPECT_EQ(port.harvest()->bytes, numbered_frame(1, 60));
  port.refill(1);
  EXPECT_EQ(port.receive(), 1U);
  EXPECT_EQ(port.harvest()->bytes, numbered_frame(2, 60));
}

TEST(Engine, DropsWhatIsTooLongWithoutScatter) {
  TestPort port({}, 64, {100});
  port.refill();
  ASSERT_EQ(port.send(numbered_frame(1, 101)), 1U);
  ASSERT_EQ(port.send(numbered_frame(2, 100)), 1U);
  EXPECT_EQ(port.receive(), 1U);
  EXPECT_EQ(port.count(Count::rx_too_long), 1U);
  EXPECT_EQ(port.harvest()->bytes, numbered_frame(2, 100));
}

TEST(Engine, ScattersOverBuffers) {
  TestPort port({}, 64, {100});
  port.rx().scatter = true;
  port.refill();
  ASSERT_EQ(port.send(numbered_frame(1, 250)), 1U);
  ASSERT_EQ(port.send(numbered_frame(2, 200)), 1U);
  EXPECT_EQ(port.receive(), 2U);
  const auto first = port.harvest();
  EXPECT_EQ(first->bytes, numbered_frame(1, 250));
  EXPECT_EQ(first->lengths, (std::vector<std::uint32_t>{100, 100, 50}));
  EXPECT_EQ(port.harvest()->lengths, (std::vector<std::uint32_t>{100, 100}));
  ASSERT_EQ(port.send(numbered_frame(3, 3300)), 1U);  // more buffers than the driver is sure to post
  EXPECT_EQ(port.receive(), 0U);
  EXPECT_EQ(port.count(Count::rx_too_long), 1U);
}

TEST(Engine, SplitsByLength) {
  TestPort port({}, 64, {20, 30, 200});
  port.refill();
  for (const std::uint32_t length : {14U, 20U, 21U, 50U, 51U, 250U, 251U}) {
    ASSERT_EQ(port.send(numbered_frame(length, length)), 1U);
  }
  EXPECT_EQ(port.receive(), 6U);
  EXPECT_EQ(port.count(Count::rx_too_long), 1U);
  const std::vector<std::vector<std::uint32_t>> expected = {{14, 0, 0},  {20, 0, 0},  {20, 1, 0},
                                                            {20, 30, 0}, {20, 30, 1}, {20, 30, 200}};
  for (const auto& lengths : expected) {
    const auto received = port.harvest();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->lengths, lengths);
    EXPECT_EQ(received->bytes,
              numbered_frame(received->bytes.size(), static_cast<std::uint32_t>(received->bytes.size())));
  }
}

TEST(Engine, SplitsBehindHeaders) {
  TestPort port({}, 64, {128, 2048});
  port.rx().split_at_headers = true;
  {
    const Ingress::Change change(port.hardware.ingress);
    port.hardware.ingress.needs_header_length = true;
  }
  port.refill();
  ASSERT_EQ(port.send(numbered_frame(7, 500)), 1U);  // of no protocol known: Ethernet's header only
  ASSERT_EQ(port.receive(), 1U);
  const auto received = port.harvest();
  EXPECT_EQ(received->lengths, (std::vector<std::uint32_t>{14, 486}));
  EXPECT_EQ(received->bytes, numbered_frame(7, 500));
}

TEST(Engine, TimestampsGrow) {
  TestPort port;
  port.refill();
  {
    const Ingress::Change change(port.hardware.ingress);
    port.hardware.ingress.reports_time = true;
  }
  const std::uint64_t before = device_nanos();
  ASSERT_EQ(port.send(numbered_frame(1, 60)), 1U);
  ASSERT_EQ(port.receive(), 1U);
  const std::uint32_t stamp = rx_nanos(port.harvest()->word);
  EXPECT_LE(stamp - static_cast<std::uint32_t>(before), static_cast<std::uint32_t>(device_nanos() - before));
}

TEST(Engine, ReadsNoClockForTimesThatNobodyWants) {
  TestPort port;
  port.refill();
  ASSERT_EQ(port.send(numbered_frame(1, 60)), 1U);
  ASSERT_EQ(port.receive(), 1U);
  EXPECT_EQ(rx_nanos(port.harvest()->word), 0U);
}

TEST(Engine, WaitsForTheReleaseOfAFrame) {
  TestPort port;
  port.refill();
  const Bytes frame = numbered_frame(1, 60);
  {
    const std::scoped_lock held(port.hardware.egress);
    port.hardware.ingress.deliver(frame.data(), 60, device_nanos() + 3'600'000'000'000);
  }
  EXPECT_EQ(port.receive(), 0U);
  EXPECT_EQ(port.hardware.ingress.buffer(0).frames(), 1U);
}

TEST(Engine, NamesEveryReasonNotToSend) {
  Devargs args;
  args.wire = WireKind::peer;
  args.peer = "net_vnic_absent";
  TestPort port(args);
  EXPECT_EQ(port.send(numbered_frame(1, 60)), 0U);
  EXPECT_EQ(port.count(Count::tx_no_peer), 1U);
  port.hardware.link.up = false;
  EXPECT_EQ(port.send(numbered_frame(1, 60)), 0U);
  EXPECT_EQ(port.count(Count::tx_link_down), 1U);
}

TEST(Engine, ASinkSwallows) {
  Devargs args;
  args.wire = WireKind::sink;
  TestPort port(args);
  port.refill();
  EXPECT_EQ(port.send(numbered_frame(1, 60)), 1U);
  EXPECT_EQ(port.receive(), 0U);
}

TEST(Engine, ASourceMakesAsManyFramesAsAskedFor) {
  Devargs args;
  args.wire = WireKind::source;
  args.size = 100;
  args.flows = 3;
  TestPort port(args);
  ASSERT_EQ(port.open_status, 0);
  ASSERT_EQ(port.hardware.engine.start(), 0);
  port.refill();
  EXPECT_EQ(port.receive(5), 5U);
  EXPECT_EQ(port.receive(32), 32U);
  std::vector<Bytes> frames;
  while (const auto received = port.harvest()) frames.push_back(received->bytes);
  ASSERT_EQ(frames.size(), 37U);
  EXPECT_EQ(frames[0], frames[3]);
  EXPECT_NE(frames[0], frames[1]);
  EXPECT_EQ(frames[0].size(), 100U);
  EXPECT_EQ(port.send(frames[0]), 1U);
}

TEST(Engine, AStaticWireFillsWhatIsPosted) {
  Devargs args;
  args.wire = WireKind::fixed;
  args.size = 64;
  TestPort port(args);
  port.refill(40);
  EXPECT_EQ(port.receive(32), 32U);
  EXPECT_EQ(port.receive(32), 8U);
  EXPECT_EQ(port.receive(32), 0U);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(port.harvest()->lengths, (std::vector<std::uint32_t>{64}));
  port.refill();
  EXPECT_EQ(port.receive(64), 64U);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      port.post(numbered_frame(i, 60), 2, i % 8 == 7 ? std::uint64_t{kTxReport} : 0);
    }
    port.doorbell();
    EXPECT_EQ(port.hardware.engine.serve_tx(port.tx()), 20U);
    for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(port.reported(round * 40 + i), i / 2 % 8 == 7) << i;
  }
  EXPECT_EQ(port.count(Count::tx_packets), 60U);
  EXPECT_EQ(port.count(Count::tx_bytes), 60U * 60);
}

TEST(Engine, AStaticWireSplitsToo) {
  Devargs args;
  args.wire = WireKind::fixed;
  args.size = 64;
  TestPort port(args, 64, {14, 100});
  port.refill();
  EXPECT_EQ(port.receive(4), 4U);
  EXPECT_EQ(port.harvest()->lengths, (std::vector<std::uint32_t>{14, 50}));
}

TEST(Engine, StallsAndRunsOutBySeededDraws) {
  Devargs args;
  args.faults.stall = 0.5;
  args.faults.rx_out = 0.5;
  TestPort port(args);
  port.refill();
  std::uint64_t received = 0;
  for (std::uint32_t i = 0; i < 60; ++i) ASSERT_EQ(port.send(numbered_frame(i, 60)), 1U);
  for (int i = 0; i < 1000; ++i) received += port.receive(1);
  EXPECT_EQ(received, 60U);
  EXPECT_GT(port.count(Count::fault_stall_polls), 50U);
  EXPECT_GT(port.count(Count::fault_rx_out_polls), 20U);
  EXPECT_EQ(port.count(Count::rx_no_descriptor), 0U);
}

TEST(Engine, IdlePollsLetGoOfWhatFaultsHoldBack) {
  Devargs args;
  args.faults.reorder = 1;
  args.faults.reorder_depth = 8;
  TestPort port(args);
  port.refill();
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(port.send(numbered_frame(i, 60)), 1U);
  EXPECT_EQ(port.hardware.egress.faults().held(), 3U);
  std::uint32_t received = 0;
  for (int i = 0; i < 100; ++i) received += port.receive();
  EXPECT_EQ(received, 3U);
}

TEST(Engine, StopSendsWhatIsPostedAndHeld) {
  Devargs args;
  args.faults.reorder = 1;
  TestPort port(args);
  port.refill();
  for (std::uint32_t i = 0; i < 3; ++i) port.post(numbered_frame(i, 60));
  port.doorbell();
  port.hardware.engine.stop();
  EXPECT_EQ(port.receive(), 3U);
}

}  // namespace
}  // namespace warpline::vnic
