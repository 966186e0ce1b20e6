// SPDX-License-Identifier: Apache-2.0
#include "config/check/check_stream.h"

#include <gtest/gtest.h>

#include "config/load_testing.h"

namespace warpline::config {
namespace {

std::string stream_line(const std::string& line) { return outcome(load_line("stream " + line + " --port net_null0")); }

TEST(CheckStream, WantsAddressesThatHostsHave) {
  const std::string connect = "send --address 10.0.0.1/24 --gateway 10.0.0.9 --connect ";
  EXPECT_EQ(stream_line(connect + "224.0.0.1:5001"),
            "cannot use --connect 224.0.0.1:5001: no host has that address; name one host's");
  EXPECT_EQ(stream_line(connect + "255.255.255.255:5001"),
            "cannot use --connect 255.255.255.255:5001: no host has that address; name one host's");
  EXPECT_EQ(stream_line(connect + "192.0.2.1:5001"), "ok");
  for (const std::string address : {"10.0.0.255/24", "10.0.0.0/24", "224.0.0.1/4", "ff02::1/64", "0.0.0.0/0"}) {
    EXPECT_EQ(stream_line("receive --listen 5001 --address " + address),
              "cannot use --address " + address +
                  ": no host has that address; name one that a host may have, and its link's length");
  }
  EXPECT_EQ(stream_line("receive --listen 5001 --address 10.0.0.0/31"), "ok");
}

TEST(CheckStream, WantsConnectionsForEachQueueThatSends) {
  const std::string send = "send --address 10.0.0.1/24 --connect 10.0.0.2:5001 ";
  EXPECT_EQ(stream_line(send + "-p 3 -P 4"), "ok");
  EXPECT_EQ(stream_line(send + "-p 3 -P 2"),
            "cannot combine --pipelines 3 with --parallel 2: each queue has connections of its own; use as many "
            "connections or more");
}

TEST(CheckStream, WantsAnMtuThatTcpMayRelyOn) {
  const std::string v4 = "receive --listen 5001 --address 10.0.0.1/24 --mtu ";
  const std::string v6 = "receive --listen 5001 --address fd00::1/64 --mtu ";
  EXPECT_EQ(stream_line(v4 + "575"), "cannot use --mtu 575: TCP over IPv4 needs 576 bytes; use 576 or more");
  EXPECT_EQ(stream_line(v4 + "576"), "ok");
  EXPECT_EQ(stream_line(v6 + "1279"), "cannot use --mtu 1279: TCP over IPv6 needs 1280 bytes; use 1280 or more");
  EXPECT_EQ(stream_line(v6 + "1280"), "ok");
}

}  // namespace
}  // namespace warpline::config
