// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "vnic/engine/engine_testing.h"
#include "vnic/engine/lazy_copies_testing.h"
#include "warpline/base/property_testing.h"

namespace warpline::vnic {
namespace {

/// Any frames, any pieces, any order of calls: what comes out is what went in, and every report comes.
WARPLINE_PROPERTY(EngineWire, IsAFaithfulWire, ()) {
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto size = *rc::gen::element<std::uint16_t>(64, 100, 512);
  const bool late = *rc::gen::arbitrary<bool>();
  const auto rooms =
      *rc::gen::elementOf(std::vector<std::vector<std::uint16_t>>{{2048}, {300}, {64, 300}, {20, 40, 100, 700}});
  LazyCopies copies(*rc::gen::element(1, 3));
  const rte_net_vnic_copy_engine engine = copies.engine();
  TestPort port({}, size, rooms, late ? &engine : nullptr);
  port.rx().scatter = true;
  std::deque<Bytes> expected;
  std::uint64_t number = 0;
  std::uint32_t completed = 0;
  std::uint32_t serves = 0;
  const auto pending = [&] {
    while (completed != port.tx().posted && port.reported(completed)) ++completed;
    return port.tx().posted - completed;
  };
  const auto harvest = [&] {
    while (const auto received = port.harvest()) {
      RC_ASSERT(!expected.empty());
      RC_ASSERT(received->bytes == expected.front());
      RC_ASSERT(received->lengths.size() % rooms.size() == 0);
      expected.pop_front();
    }
  };
  for (int step = 0; step < 300; ++step) {
    switch (random.below(4)) {
      case 0: {
        const auto pieces = static_cast<std::uint32_t>(1 + random.below(5));
        if (pending() + pieces > size) break;
        const Bytes frame = numbered_frame(++number, static_cast<std::uint32_t>(14 + random.below(1500)));
        port.post(frame, pieces, kTxReport);
        port.doorbell();
        expected.push_back(frame);
        break;
      }
      case 1:
        port.hardware.engine.serve_tx(port.tx());
        break;
      case 2:
        port.refill(static_cast<std::uint32_t>(random.below(size) / rooms.size() * rooms.size()));
        break;
      default:
        port.receive(static_cast<std::uint32_t>(random.below(40)));
        harvest();
    }
  }
  for (; !expected.empty() && serves < 1000; ++serves) {
    port.hardware.engine.serve_tx(port.tx());
    port.refill();
    port.receive();
    harvest();
  }
  RC_ASSERT(expected.empty());
  RC_ASSERT(port.count(Count::tx_packets) == number);
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(size, port.tx().fetched); ++i) RC_ASSERT(port.reported(i));
  RC_ASSERT(copies.spoiled + copies.misused == 0);
  RC_ASSERT(port.count(Count::rx_too_long) + port.count(Count::tx_malformed) == 0U);
}

TEST(EngineWire, SendsAndReceivesOnTwoThreads) {
  constexpr std::uint64_t kFrames = 20000;
  TestPort port;
  port.refill();
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < kFrames;) {
      if (port.hardware.ingress.buffer(0).frames() > 1000) {
        std::this_thread::yield();
        continue;
      }
      port.send(numbered_frame(i, 60 + i % 40));
      ++i;
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kFrames;) {
    if (port.receive(32) == 0) std::this_thread::yield();
    while (const auto received = port.harvest()) {
      wrong += received->bytes == numbered_frame(i, 60 + i % 40) ? 0 : 1;
      ++i;
    }
    port.refill();
  }
  sender.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace warpline::vnic
