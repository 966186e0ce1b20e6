// SPDX-License-Identifier: Apache-2.0
#include "vnic/args/devargs.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "warpline/base/property_testing.h"

namespace warpline::vnic {
namespace {

TEST(DevargsTest, NothingIsALoopbackWithoutFaults) {
  Devargs args;
  EXPECT_EQ(parse_devargs("", args), 0);
  EXPECT_EQ(args.wire, WireKind::loopback);
  EXPECT_EQ(args.engine, EngineKind::inline_);
  EXPECT_FALSE(args.faults.any());
}

TEST(DevargsTest, ReadsEveryKey) {
  Devargs args;
  ASSERT_EQ(parse_devargs("wire=source,engine=thread,cpu=3,size=128,flows=16,rate=2Mpps,buffer=64Ki,queues=4,"
                          "fast_free=0,refill=ring,rx_align=8,rx_buffer_unit=128,link_up_after=3,seed=9,loss=0.25",
                          args),
            0);
  EXPECT_EQ(args.wire, WireKind::source);
  EXPECT_EQ(args.engine, EngineKind::thread);
  EXPECT_EQ(args.engine_cpu, 3);
  EXPECT_EQ(args.size, 128U);
  EXPECT_EQ(args.flows, 16U);
  EXPECT_EQ(args.packets_per_s, 2e6);
  EXPECT_EQ(args.faults.bits_per_s, 0U);
  EXPECT_EQ(args.buffer, 65536U);
  EXPECT_EQ(args.rx_queues, 4);
  EXPECT_EQ(args.tx_queues, 4);
  EXPECT_FALSE(args.fast_free);
  EXPECT_EQ(args.refill, Refill::ring);
  EXPECT_EQ(args.rx_align, 8);
  EXPECT_EQ(args.rx_buffer_unit, 128);
  EXPECT_EQ(args.link_up_after, 3U);
  EXPECT_EQ(args.seed, 9U);
  EXPECT_EQ(args.faults.loss, 0.25);
}

TEST(DevargsTest, APersonaIsWhatNothingElseSays) {
  Devargs args;
  ASSERT_EQ(parse_devargs("rx_align=1,link_up_after=9,persona=ixgbe", args), 0);
  EXPECT_EQ(args.persona->name, "ixgbe");
  EXPECT_EQ(args.rx_align, 1) << "wherever it stands";
  EXPECT_EQ(args.link_up_after, 9U);
  EXPECT_EQ(args.rx_buffer_unit, 1024);
  EXPECT_FALSE(args.fast_free);
  ASSERT_EQ(parse_devargs("", args), 0);
  EXPECT_EQ(args.persona->name, "");
  EXPECT_EQ(args.rx_buffer_unit, 1);
  EXPECT_EQ(parse_devargs("persona=e1000", args), -EINVAL);
  EXPECT_EQ(parse_devargs("persona=", args), -EINVAL);
}

TEST(DevargsTest, InliningIsSetWhereTheDriverHasIt) {
  Devargs args;
  ASSERT_EQ(parse_devargs("persona=mlx5", args), 0);
  EXPECT_EQ(args.reads_sent.bytes, 290);
  EXPECT_EQ(args.reads_sent.from_queues, 8);
  ASSERT_EQ(parse_devargs("persona=mlx5,txq_inline_max=0,txqs_inline=1", args), 0);
  EXPECT_EQ(args.reads_sent.bytes, 0);
  EXPECT_EQ(args.reads_sent.from_queues, 1);
  EXPECT_EQ(parse_devargs("txq_inline_max=0", args), -EINVAL);
  EXPECT_EQ(parse_devargs("persona=ena,txq_inline_max=0", args), -EINVAL);
}

TEST(DevargsTest, ARateIsTheWiresButForASupply) {
  Devargs args;
  ASSERT_EQ(parse_devargs("rate=10gbit", args), 0);
  EXPECT_EQ(args.faults.bits_per_s, 10'000'000'000U);
  EXPECT_EQ(args.packets_per_s, 0);
  // 1000 bytes and 24 of layer 1, wherever the size stands.
  ASSERT_EQ(parse_devargs("rate=8192kbit,wire=source,size=1000", args), 0);
  EXPECT_EQ(args.packets_per_s, 1000);
  EXPECT_EQ(args.faults.bits_per_s, 0U);
  ASSERT_EQ(parse_devargs("wire=static,rate=148.8Mpps", args), 0);
  EXPECT_EQ(args.packets_per_s, 148.8e6);
  EXPECT_EQ(args.faults.bits_per_s, 0U);
}

TEST(DevargsTest, TheRateOfASupplyMayStep) {
  Devargs args;
  ASSERT_EQ(parse_devargs("wire=static,step=10@100ms,rate=3Mpps", args), 0);
  EXPECT_EQ(args.step, 10);
  EXPECT_EQ(args.step_nanos, 1e8);
  for (const char* wrong :
       {"wire=static,rate=3Mpps,step=10", "wire=static,rate=3Mpps,step=0@1ms", "step=10@1ms", "wire=source,step=10@1ms",
        "rate=1gbit,step=10@1ms", "wire=source,rate=1Mpps,step=10@soon"}) {
    EXPECT_NE(parse_devargs(wrong, args), 0) << wrong;
  }
}

TEST(DevargsTest, AWireMayBeAPort) {
  Devargs args;
  ASSERT_EQ(parse_devargs("wire=net_vnic7", args), 0);
  EXPECT_EQ(args.wire, WireKind::peer);
  EXPECT_EQ(args.peer, "net_vnic7");
}

TEST(DevargsTest, RefusesAndLeavesTheArgumentsAlone) {
  for (const char* text : {"wire=moon",   "wire=",    "engine=steam", "wrie=loopback",     "loss",
                           "loss=2",      "rate=0",   "rate=0gbit",   "size=10",           "size=10000",
                           "flows=0",     "queues=0", "queues=33",    "buffer=1",          "fast_free=2",
                           "refill=none", "seed=-1",  "cpu=x",        "pcap=a.pcap",       "wire=source,pcap=",
                           "=",           "rate=",    "rate=5Mpps",   "wire=source,rate=0"}) {
    Devargs args;
    args.seed = 77;
    EXPECT_EQ(parse_devargs(text, args), -EINVAL) << text;
    EXPECT_EQ(args.seed, 77U) << text;
  }
}

TEST(DevargsTest, RefusesWhatIsNoPowerOfTwo) {
  for (const char* key : {"rx_align", "rx_buffer_unit"}) {
    for (const char* value : {"0", "6", "1000", "2048"}) {
      Devargs args;
      EXPECT_EQ(parse_devargs((std::string(key) + "=" + value).c_str(), args), -EINVAL) << key << value;
    }
  }
}

WARPLINE_PROPERTY(DevargsTest, AnyTextIsReadOrRefused, (const std::string& text)) {
  Devargs args;
  const int status = parse_devargs(text.c_str(), args);
  RC_ASSERT(status == 0 || status == -EINVAL);
}

}  // namespace
}  // namespace warpline::vnic
