// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/receiver_settings.h"

#include <gtest/gtest.h>

#include "warpline/stream/stream_receiver.h"
#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using testing::small_settings;

TEST(ReceiverSettingsTest, AreRefusedWhereTheyMakeNoSense) {
  const auto refused = [](auto change) {
    ReceiverSettings settings = small_settings();
    change(settings);
    const auto receiver = StreamReceiver::create(settings, Nanos{});
    if (receiver.ok()) return false;
    const Error& error = receiver.error();
    return error.kind == ErrorKind::usage && !error.what.empty() && !error.why.empty() && !error.fix.empty();
  };
  EXPECT_FALSE(refused([](ReceiverSettings&) {}));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.ports.clear(); }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.ports = {0}; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.connections = 0; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.ring_bytes = 100'000; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.ring_bytes = 32 << 10; }));
  // RFC 9293, 3.8.6.3: less than 0.5 seconds.
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.delayed_acknowledgement = milliseconds(500); }));
  EXPECT_FALSE(refused([](ReceiverSettings& s) { s.delayed_acknowledgement = milliseconds(499); }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.secret = {}; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.first_retransmission = Nanos{0}; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.retransmissions = 256; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.keepalive_probes = 256; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.lane_patience = Nanos{0}; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.keepalive_interval = Nanos{0}; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.mtu = 575; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.consumers = true; }));  // without a lane
  EXPECT_TRUE(refused([](ReceiverSettings& s) {
    s.address = Ipv6Address{{0xfd}};
    s.mtu = 1279;
  }));
}

TEST(ReceiverSettingsTest, DoNotHaveMoreMemoryTakenThanThereIs) {
  ReceiverSettings settings = small_settings();
  settings.connections = 16'384;
  settings.ring_bytes = 1 << 30;
  settings.populate_rings = true;
  const auto receiver = StreamReceiver::create(settings, Nanos{});
  ASSERT_FALSE(receiver.ok());
  EXPECT_EQ(receiver.error().kind, ErrorKind::environment);
  EXPECT_NE(receiver.error().message().find("cannot take 16777216 MiB"), std::string::npos)
      << receiver.error().message();
}

}  // namespace
}  // namespace warpline::stream
