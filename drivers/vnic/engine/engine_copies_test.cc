// SPDX-License-Identifier: Apache-2.0
// Payload that a copy engine of the program's moves, burst by burst.

#include <gtest/gtest.h>

#include <vector>

#include "vnic/engine/engine_testing.h"
#include "vnic/engine/lazy_copies_testing.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kCopiedBurst = 8;

/// A looped-back port whose copies land when the test says so.
class EngineCopies : public testing::Test {
 protected:
  EngineCopies() : engine_(copies.engine()) {}
  ~EngineCopies() override {
    EXPECT_EQ(copies.spoiled, 0);
    EXPECT_EQ(copies.misused, 0);
    EXPECT_EQ(copies.open_lanes(), 0U);
  }
  std::unique_ptr<TestPort> make(const Devargs& args = {}, std::uint16_t size = 64,
                                 std::vector<std::uint16_t> rooms = {2048}) {
    auto port = std::make_unique<TestPort>(args, size, std::move(rooms), &engine_);
    EXPECT_EQ(port->open_status, 0);
    return port;
  }
  static std::uint32_t post(TestPort& port, std::uint32_t first, std::uint32_t count = kCopiedBurst,
                            std::uint32_t length = 300) {
    for (std::uint32_t i = 0; i < count; ++i) port.post(numbered_frame(first + i, length), 1, kTxReport);
    port.doorbell();
    return port.hardware.engine.serve_tx(port.tx());
  }
  /// Frames `first` on, as many as are there.
  static std::uint32_t harvest(TestPort& port, std::uint32_t first, std::uint32_t length = 300) {
    std::uint32_t count = 0;
    while (const auto received = port.harvest()) EXPECT_EQ(received->bytes, numbered_frame(first + count++, length));
    return count;
  }
  static std::uint32_t reported(TestPort& port) {
    std::uint32_t count = 0;
    while (count < port.tx().size && port.reported(count)) ++count;
    return count;
  }

  LazyCopies copies;

 private:
  rte_net_vnic_copy_engine engine_;
};

TEST_F(EngineCopies, SendSeveralBurstsAtATimeEachWhenItHasLanded) {
  const auto port = make();
  port->refill();
  for (std::uint32_t burst = 0; burst < 5; ++burst) EXPECT_EQ(post(*port, burst * kCopiedBurst), 0U);
  EXPECT_EQ(copies.waiting(), 5U);
  EXPECT_EQ(reported(*port), 0U);
  EXPECT_EQ(port->hardware.ingress.buffer(0).frames(), 0U);
  copies.land(RTE_NET_VNIC_TX, 2);
  EXPECT_EQ(port->hardware.engine.serve_tx(port->tx()), 2 * kCopiedBurst);
  EXPECT_EQ(reported(*port), 2 * kCopiedBurst);
  EXPECT_EQ(port->hardware.ingress.buffer(0).frames(), 2 * kCopiedBurst);
  EXPECT_EQ(copies.waiting(), 3U);
  copies.land(RTE_NET_VNIC_TX);
  EXPECT_EQ(port->hardware.engine.serve_tx(port->tx()), 3 * kCopiedBurst);
  EXPECT_EQ(reported(*port), 5 * kCopiedBurst);
  EXPECT_EQ(port->receive(), 0U);
  copies.land(RTE_NET_VNIC_RX);
  EXPECT_EQ(port->receive(), 5 * kCopiedBurst);
  EXPECT_EQ(harvest(*port, 0), 5 * kCopiedBurst);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

TEST_F(EngineCopies, ReceiveSeveralBurstsAtATimeEachWhenItHasLanded) {
  const auto port = make();
  port->refill();
  post(*port, 0, 40);
  copies.land(RTE_NET_VNIC_TX);
  port->hardware.engine.serve_tx(port->tx());
  for (std::uint32_t burst = 0; burst < 5; ++burst) EXPECT_EQ(port->receive(kCopiedBurst), 0U);
  EXPECT_EQ(copies.waiting(), 5U);
  EXPECT_FALSE(port->harvest());
  copies.land(RTE_NET_VNIC_RX, 1);
  EXPECT_EQ(port->receive(kCopiedBurst), kCopiedBurst);
  EXPECT_EQ(harvest(*port, 0), kCopiedBurst);
  copies.land(RTE_NET_VNIC_RX, 3);
  EXPECT_EQ(port->receive(kCopiedBurst), 3 * kCopiedBurst);
  EXPECT_EQ(harvest(*port, kCopiedBurst), 3 * kCopiedBurst);
  copies.land(RTE_NET_VNIC_RX);
  EXPECT_EQ(port->receive(kCopiedBurst), kCopiedBurst);
  EXPECT_EQ(harvest(*port, 4 * kCopiedBurst), kCopiedBurst);
  EXPECT_EQ(port->hardware.ingress.buffer(0).frames(), 0U);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

/// What lies in the wire's memory stays there until it has landed, however much more comes.
TEST_F(EngineCopies, KeepTheWiresMemoryUntilTheyHaveLanded) {
  Devargs args;
  args.buffer = Devargs::kMinBuffer;
  const auto port = make(args, 512);
  port->refill();
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  for (int round = 0; round < 40; ++round) {
    post(*port, sent, kCopiedBurst, 1500);
    sent += kCopiedBurst;
    if (round % 3 == 0) copies.land(RTE_NET_VNIC_TX, 2);
    port->receive(kCopiedBurst);
    if (round % 5 == 0) copies.land(RTE_NET_VNIC_RX, 1);
    port->receive(0);
    while (const auto frame = port->harvest()) {
      ++received;
      EXPECT_EQ(frame->bytes.size(), 1500U);
    }
    port->refill();
  }
  copies.land(RTE_NET_VNIC_TX);
  for (int calls = 0; calls < 100; ++calls) {
    port->hardware.engine.serve_tx(port->tx());
    copies.land(RTE_NET_VNIC_TX);
    port->receive();
    copies.land(RTE_NET_VNIC_RX);
    while (port->harvest()) ++received;
    port->refill();
  }
  EXPECT_EQ(port->count(Count::tx_packets), sent);
  EXPECT_EQ(received + port->count(Count::rx_no_descriptor), sent);
  EXPECT_GT(port->count(Count::rx_no_descriptor), 0U);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

TEST_F(EngineCopies, WaitForAnEngineThatTakesNoMore) {
  copies.take_at_most(2);
  const auto port = make();
  port->refill();
  for (std::uint32_t burst = 0; burst < 5; ++burst) post(*port, burst * kCopiedBurst);
  EXPECT_EQ(copies.waiting(), 2U);
  std::uint32_t sent = 0;
  for (int calls = 0; calls < 10; ++calls) {
    copies.land(RTE_NET_VNIC_TX, 1);
    sent += port->hardware.engine.serve_tx(port->tx());
  }
  EXPECT_EQ(sent, 5 * kCopiedBurst);
  EXPECT_EQ(reported(*port), 5 * kCopiedBurst);
  std::uint32_t received = 0;
  for (int calls = 0; calls < 20; ++calls) {
    port->receive(3);
    copies.land(RTE_NET_VNIC_RX, 1);
    received += harvest(*port, received);
  }
  EXPECT_EQ(received, 5 * kCopiedBurst);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

TEST_F(EngineCopies, GatherPiecesAndSpreadThemOverBuffers) {
  const auto port = make({}, 128, {100, 64, 300});
  port->rx().scatter = true;
  port->refill();
  for (std::uint32_t i = 0; i < 10; ++i) port->post(numbered_frame(i, 1000 + i), 1 + i % 4, kTxReport);
  port->doorbell();
  port->hardware.engine.serve_tx(port->tx());
  EXPECT_EQ(copies.totals(RTE_NET_VNIC_TX).copies, 10U + (0 + 1 + 2 + 3) * 2 + 0 + 1);
  copies.land(RTE_NET_VNIC_TX);
  EXPECT_EQ(port->hardware.engine.serve_tx(port->tx()), 10U);
  port->receive();
  EXPECT_FALSE(port->harvest());
  copies.land(RTE_NET_VNIC_RX);
  EXPECT_EQ(port->receive(), 10U);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(port->harvest()->bytes, numbered_frame(i, 1000 + i));
  EXPECT_EQ(copies.totals(RTE_NET_VNIC_RX).bytes, 10045U);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

TEST_F(EngineCopies, StepOverWhatCannotBeSentInOrder) {
  const auto port = make();
  port->refill();
  std::uint8_t elsewhere[64] = {};
  port->post(numbered_frame(0, 300), 1, kTxReport);
  port->post_raw(reinterpret_cast<std::uintptr_t>(elsewhere), tx_word(64, 0, 0, kTxEnd | kTxReport));
  port->post(numbered_frame(1, 300), 1, kTxReport);
  port->post_raw(0, tx_word(0, 0, 0, kTxEnd | kTxReport));
  port->doorbell();
  port->hardware.engine.serve_tx(port->tx());
  EXPECT_EQ(reported(*port), 0U) << "not before what was posted earlier";
  copies.land(RTE_NET_VNIC_TX);
  EXPECT_EQ(port->hardware.engine.serve_tx(port->tx()), 2U);
  EXPECT_EQ(reported(*port), 4U);
  EXPECT_EQ(port->count(Count::tx_iommu_fault), 1U);
  EXPECT_EQ(port->count(Count::tx_malformed), 1U);
  // Nothing but such: there is no copy to wait for.
  port->post_raw(0, tx_word(0, 0, 0, kTxEnd | kTxReport));
  port->doorbell();
  port->hardware.engine.serve_tx(port->tx());
  EXPECT_EQ(reported(*port), 5U);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

TEST_F(EngineCopies, ThatFailLoseWhatIsUnderWayAndNothingElse) {
  const auto port = make();
  port->refill();
  post(*port, 0, 24);
  copies.land(RTE_NET_VNIC_TX);
  port->hardware.engine.serve_tx(port->tx());
  port->receive(kCopiedBurst);
  copies.land(RTE_NET_VNIC_RX);
  EXPECT_EQ(port->receive(kCopiedBurst), kCopiedBurst);
  post(*port, 24);
  copies.fail();
  EXPECT_EQ(port->receive(kCopiedBurst), 0U);
  EXPECT_EQ(post(*port, 32), 0U);
  EXPECT_EQ(port->count(Count::tx_copy_failed), 2 * kCopiedBurst);
  EXPECT_EQ(port->count(Count::rx_copy_failed), 2 * kCopiedBurst) << "under way, and begun in vain";
  EXPECT_EQ(reported(*port), 40U) << "mbufs come back to the driver";
  EXPECT_EQ(harvest(*port, 0), kCopiedBurst);
  EXPECT_EQ(post(*port, 40, 3), 0U);
  EXPECT_EQ(port->count(Count::tx_copy_failed), 2 * kCopiedBurst + 3);
  EXPECT_EQ(port->receive(kCopiedBurst), 0U);
  port->hardware.engine.finish(port->tx());
  port->hardware.engine.finish(port->rx());
}

TEST(EngineCopiesOfTheirOwnPace, AreAwaitedWhenAQueueIsFinished) {
  LazyCopies copies(3);
  const rte_net_vnic_copy_engine engine = copies.engine();
  TestPort port({}, 64, {2048}, &engine);
  port.refill();
  for (std::uint32_t i = 0; i < 20; ++i) port.post(numbered_frame(i, 1500));
  port.doorbell();
  port.hardware.engine.finish(port.tx());
  EXPECT_EQ(port.count(Count::tx_packets), 20U);
  port.receive();
  port.hardware.engine.finish(port.rx());
  EXPECT_EQ(copies.waiting(), 0U);
  EXPECT_EQ(copies.open_lanes(), 0U);
  EXPECT_EQ(copies.spoiled + copies.misused, 0);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_EQ(port.harvest()->bytes, numbered_frame(i, 1500));
}

TEST(EngineCopiesOfTheirOwnPace, MovePayloadOverTheStaticWireToo) {
  LazyCopies copies(2);
  const rte_net_vnic_copy_engine engine = copies.engine();
  Devargs args;
  args.wire = WireKind::fixed;
  args.size = 500;
  TestPort port(args, 64, {2048}, &engine);
  port.refill();
  std::uint32_t received = 0;
  std::uint32_t sent = 0;
  for (std::uint32_t round = 0; round < 1000; ++round) {
    port.receive(kCopiedBurst);
    while (const auto frame = port.harvest()) {
      ++received;
      ASSERT_EQ(frame->bytes.size(), 500U);
      ASSERT_EQ(frame->bytes[12] << 8 | frame->bytes[13], 0x0800);
      port.post(frame->bytes, 1, kTxReport);
    }
    port.doorbell();
    sent += port.hardware.engine.serve_tx(port.tx());
    port.refill();
  }
  port.hardware.engine.finish(port.tx());
  EXPECT_GT(received, 2000U);
  EXPECT_GT(sent, 2000U);
  EXPECT_EQ(port.count(Count::tx_packets), received);
  EXPECT_EQ(port.count(Count::tx_bytes), std::uint64_t{received} * 500);
  EXPECT_EQ(copies.totals(RTE_NET_VNIC_TX).bytes, std::uint64_t{received} * 500);
  EXPECT_GE(copies.totals(RTE_NET_VNIC_RX).bytes, std::uint64_t{received} * 500);
  EXPECT_GT(copies.totals(RTE_NET_VNIC_RX).most_waiting, 1U);
  port.hardware.engine.finish(port.rx());
  EXPECT_EQ(copies.spoiled + copies.misused, 0);
}

TEST(EngineCopiesOfTheirOwnPace, KeepTheStaticWiresRate) {
  LazyCopies copies(1);
  const rte_net_vnic_copy_engine engine = copies.engine();
  for (const double rate : {1e-6, 1e12}) {
    Devargs args;
    args.wire = WireKind::fixed;
    args.packets_per_s = rate;
    TestPort port(args, 64, {2048}, &engine);
    port.refill();
    while (rate > 1 && port.receive(kCopiedBurst) == 0) {
    }
    EXPECT_EQ(port.harvest().has_value(), rate > 1);
    port.hardware.engine.finish(port.tx());
    port.hardware.engine.finish(port.rx());
  }
}

}  // namespace
}  // namespace warpline::vnic
