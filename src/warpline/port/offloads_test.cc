// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/offloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rte_ethdev.h>

namespace warpline::port {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Offloads, AreNamedAsDpdkNamesThem) {
  EXPECT_EQ(*offload_bits(OffloadSide::rx, {"ipv4_cksum", "scatter", "rss_hash"}),
            RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH);
  EXPECT_EQ(*offload_bits(OffloadSide::tx, {"mbuf_fast_free"}), RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
  EXPECT_EQ(*offload_bits(OffloadSide::tx, {}), 0U);
  EXPECT_THAT(offload_names(OffloadSide::tx, RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE),
              testing::UnorderedElementsAre("multi_segs", "mbuf_fast_free"));
}

TEST(Offloads, EveryNameLeadsBackToItsBit) {
  for (const OffloadSide side : {OffloadSide::rx, OffloadSide::tx}) {
    for (const std::string& name : offload_names(side, ~std::uint64_t{0})) {
      if (name == "unknown") continue;
      const auto bit = offload_bit(side, name);
      ASSERT_TRUE(bit.ok());
      EXPECT_THAT(offload_names(side, *bit), ElementsAre(name));
    }
  }
}

TEST(Offloads, AnUnknownNameIsAUsageErrorThatNamesTheNearest) {
  const auto bits = offload_bits(OffloadSide::rx, {"scatter", "ipv4_chksum"});
  ASSERT_FALSE(bits.ok());
  EXPECT_EQ(bits.error().kind, ErrorKind::usage);
  EXPECT_THAT(bits.error().message(), HasSubstr("did you mean \"ipv4_cksum\"?"));
}

TEST(Rss, FieldsByName) {
  EXPECT_EQ(*rss_bits({"ip", "udp"}), RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
  const auto bits = rss_bits({"upd"});
  ASSERT_FALSE(bits.ok());
  EXPECT_EQ(bits.error().kind, ErrorKind::usage);
  EXPECT_THAT(bits.error().message(), HasSubstr("did you mean \"udp\"?"));
}

TEST(Rss, SaysWhatTheDeviceLacks) {
  EXPECT_THAT(refused_rss({"ip", "udp", "tcp"}, RTE_ETH_RSS_IP), ElementsAre("udp", "tcp"));
  EXPECT_THAT(refused_rss({"ip"}, RTE_ETH_RSS_IPV4), ElementsAre());
}

}  // namespace
}  // namespace warpline::port
