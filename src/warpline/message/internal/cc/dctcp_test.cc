// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/dctcp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "warpline/message/internal/cc/cc_testing.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kDctcpMtu = 1000;

CcConfig dctcp_config() {
  CcConfig config;
  config.mtu = kDctcpMtu;
  config.initial_window_bytes = 16 * kDctcpMtu;
  return config;
}

/// A window of packets acknowledged at once, of which some were marked, and as many in flight again.
CcSample round_trip(int round, std::uint32_t acked, std::uint32_t marked, double window_bytes) {
  CcSample sample = packet_acked(round * 100, 100, kDctcpMtu);
  sample.acked_packets = acked;
  sample.acked_bytes = acked * kDctcpMtu;
  sample.ecn_marked_packets = marked;
  sample.in_flight_bytes = static_cast<std::uint32_t>(window_bytes);
  return sample;
}

TEST(Dctcp, DoublesInARoundTripUntilTheFirstMark) {
  Dctcp dctcp(dctcp_config());
  dctcp.on_ack(round_trip(1, 16, 0, 32 * kDctcpMtu));
  EXPECT_EQ(dctcp.output().window_bytes, 32 * kDctcpMtu);
  dctcp.on_ack(round_trip(2, 32, 0, 64 * kDctcpMtu));
  EXPECT_EQ(dctcp.output().window_bytes, 64 * kDctcpMtu);
}

TEST(Dctcp, AlphaFollowsTheMarkedShareAndTheWindowAlpha) {
  Dctcp dctcp(dctcp_config());
  double alpha = 1;
  double window = 16 * kDctcpMtu;
  for (int round = 1; round < 50; ++round) {
    dctcp.on_ack(round_trip(round, 16, 4, window));
    alpha += (0.25 - alpha) / 16;
    window = std::max<double>(window * (1 - alpha / 2), kDctcpMtu);
    EXPECT_NEAR(dctcp.alpha(), alpha, 1e-5);
    EXPECT_NEAR(dctcp.output().window_bytes, window, 0.5);
  }
}

TEST(Dctcp, ManyAcknowledgementsOfARoundTripCountOnce) {
  Dctcp dctcp(dctcp_config());
  dctcp.on_ack(round_trip(1, 16, 16, 16 * kDctcpMtu));  // ends the first observation: 16 packets are in flight now
  const double window = dctcp.output().window_bytes;
  EXPECT_EQ(window, 8 * kDctcpMtu);
  for (int i = 1; i < 16; ++i) {
    EXPECT_EQ(dctcp.on_ack(round_trip(2, 1, 1, (16 - i) * kDctcpMtu)).window_bytes, window);
  }
  EXPECT_LT(dctcp.on_ack(round_trip(2, 1, 1, 0)).window_bytes, window);
}

TEST(Dctcp, AfterAReductionItAddsOnePacketInARoundTrip) {
  Dctcp dctcp(dctcp_config());
  dctcp.on_ack(round_trip(1, 16, 16, 16 * kDctcpMtu));
  dctcp.on_ack(round_trip(2, 8, 0, 8 * kDctcpMtu));
  EXPECT_NEAR(dctcp.output().window_bytes, 9 * kDctcpMtu, 0.5);
}

TEST(Dctcp, ALossHalvesOnceInARoundTripAndATimeoutLeavesOnePacket) {
  Dctcp dctcp(dctcp_config());
  dctcp.on_ack(round_trip(1, 16, 0, 32 * kDctcpMtu));
  EXPECT_EQ(dctcp.on_loss(Nanos{200'000}, false).window_bytes, 16 * kDctcpMtu);
  EXPECT_EQ(dctcp.on_loss(Nanos{210'000}, false).window_bytes, 16 * kDctcpMtu);
  EXPECT_EQ(dctcp.on_loss(Nanos{310'000}, false).window_bytes, 8 * kDctcpMtu);
  EXPECT_EQ(dctcp.on_loss(Nanos{310'001}, true).window_bytes, kDctcpMtu);
}

TEST(Dctcp, LossesThatWereLateAreUndone) {
  Dctcp dctcp(dctcp_config());
  dctcp.on_ack(round_trip(1, 16, 0, 32 * kDctcpMtu));
  dctcp.remember();
  dctcp.on_loss(Nanos{200'000}, false);
  ASSERT_EQ(dctcp.on_loss(Nanos{310'000}, false).window_bytes, 8 * kDctcpMtu);
  EXPECT_EQ(dctcp.restore().window_bytes, 32 * kDctcpMtu);
}

TEST(Dctcp, AfterAWhileWithoutPacketsItBeginsAsAtFirst) {
  Dctcp dctcp(dctcp_config());
  dctcp.on_ack(round_trip(1, 16, 0, 32 * kDctcpMtu));
  EXPECT_EQ(dctcp.on_idle(4 * kDctcpMtu).window_bytes, 4 * kDctcpMtu);
}

}  // namespace
}  // namespace warpline::message
