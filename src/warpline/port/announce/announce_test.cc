// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/announce/announce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/packet/headers/arp.h"
#include "warpline/packet/headers/icmpv6.h"
#include "warpline/packet/parse.h"
#include "warpline/port/ring_pair.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::port {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr MacAddress kOwn{{2, 0, 0, 0, 0, 0x11}};  // rings have none
constexpr MacAddress kOther{{2, 0, 0, 0, 0, 0x55}};

/// A port whose far end and whose clock are the test's.
class AnnouncerTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = rte_pktmbuf_pool_create("announced", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    ASSERT_NE(pool_, nullptr);
    const auto ids = *make_ring_pair(1, 256, runtime::kAnyNode);
    near_ = started(ids.first, {"10.0.0.1/24", "fd00:1::1/64"});
    far_ = started(ids.second, {});
  }
  void TearDown() override {
    near_.reset();
    far_.reset();
    EXPECT_EQ(rte_mempool_in_use_count(pool_), 0U);
    rte_mempool_free(pool_);
  }

  std::optional<Port> started(std::uint16_t id, std::vector<const char*> addresses) {
    std::optional<Port> port(*Port::adopt(id));
    PortSettings settings;
    for (const char* address : addresses) settings.addresses.push_back(*parse_interface_address(address));
    addresses_ = addresses.empty() ? addresses_ : settings.addresses;
    EXPECT_TRUE(port->configure(settings, {}).ok());
    EXPECT_TRUE(port->attach(pool_).ok());
    EXPECT_TRUE(port->start().ok());
    return port;
  }

  /// Has the worker send, and says what arrives: "arp", "report 4" with the kind of its record, or "report v1".
  std::vector<std::string> sent(Announcer& announcer) {
    if (announcer.due()) announcer.send({near_->id(), 0});
    EXPECT_FALSE(announcer.due());
    std::vector<std::string> names;
    rte_mbuf* mbuf = nullptr;
    while (rte_eth_rx_burst(far_->id(), 0, &mbuf, 1) == 1) {
      names.push_back(name_of(rte_pktmbuf_mtod(mbuf, const std::uint8_t*)));
      rte_pktmbuf_free(mbuf);
    }
    return names;
  }
  static std::string name_of(const std::uint8_t* frame) {
    if (packet::EthernetView(frame).ether_type() == packet::kEtherTypeArp) return "arp";
    return frame[62] == packet::kListenerReportV1 ? "report v1" : "report " + std::to_string(frame[70]);
  }
  /// What is sent, and said, at `now`.
  std::vector<std::string> at(Announcer& announcer, std::int64_t now) {
    lines_ = announcer.tend({now});
    return sent(announcer);
  }

  rte_mempool* pool_ = nullptr;
  std::optional<Port> near_;
  std::optional<Port> far_;
  std::vector<InterfaceAddress> addresses_;
  std::vector<std::string> lines_;
};

/// RFC 3810, 6.1: a report is sent again within the unsolicited report interval (9.11: 1 s), robustness variable - 1
/// times (9.1: 2). RFC 5227, 1.1: two announcements, 2 s apart.
TEST_F(AnnouncerTest, SaysEverythingTwice) {
  Announcer announcer(*near_, kOwn, addresses_, *pool_);
  EXPECT_EQ(announcer.begin({5 * kSecond}), 2U);
  EXPECT_THAT(sent(announcer), ElementsAre("arp", "report 4"));
  EXPECT_THAT(at(announcer, 5 * kSecond), IsEmpty());
  EXPECT_THAT(at(announcer, 6 * kSecond), ElementsAre("report 4"));
  EXPECT_THAT(at(announcer, 7 * kSecond - 1), IsEmpty());
  EXPECT_THAT(at(announcer, 7 * kSecond), ElementsAre("arp"));
  EXPECT_THAT(at(announcer, 100 * kSecond), IsEmpty());
  EXPECT_THAT(lines_, IsEmpty());
}

/// RFC 5227, 2.4 (c): a single announcement, and not again within DEFEND_INTERVAL, 10 s.
TEST_F(AnnouncerTest, DefendsAnIpv4AddressEveryTenSecondsAndSaysSoOnce) {
  Announcer announcer(*near_, kOwn, addresses_, *pool_);
  announcer.begin({0});
  (void)at(announcer, 3 * kSecond);
  (void)sent(announcer);
  packet::AddressWatch& watch = near_->watches()[0];
  watch.note_conflict(kOther.bytes.data());
  EXPECT_THAT(at(announcer, 4 * kSecond), ElementsAre("arp"));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("02:00:00:00:00:55 has the address 10.0.0.1, too")));
  watch.note_conflict(kOther.bytes.data());
  EXPECT_THAT(at(announcer, 14 * kSecond - 1), IsEmpty());
  EXPECT_THAT(at(announcer, 15 * kSecond), IsEmpty()) << "nothing new";
  watch.note_conflict(kOther.bytes.data());
  EXPECT_THAT(at(announcer, 16 * kSecond), ElementsAre("arp"));
  EXPECT_THAT(lines_, IsEmpty());
  near_->watches()[1].note_conflict(kOther.bytes.data());
  EXPECT_THAT(at(announcer, 17 * kSecond), IsEmpty()) << "an IPv6 address is not announced again";
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("fd00:1::1")));
  EXPECT_EQ(near_->counters().address_conflicts, 4U);
}

TEST_F(AnnouncerTest, AnswersQueriesThatAreOnlyNoted) {
  Announcer announcer(*near_, kOwn, addresses_, *pool_, 7);
  announcer.begin({0});
  (void)at(announcer, 3 * kSecond);
  near_->watches()[1].note_query(packet::AddressWatch::kQueryV2);
  announcer.tend({4 * kSecond}).clear();
  announcer.send({near_->id(), 0});
  rte_mbuf* mbuf = nullptr;
  while (rte_eth_rx_burst(far_->id(), 0, &mbuf, 1) == 1 && mbuf->pkt_len != 94) rte_pktmbuf_free(mbuf);
  ASSERT_NE(mbuf, nullptr);
  const auto* const frame = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
  EXPECT_EQ(packet::load_be32(frame + 12), 0x81000007U) << "in its VLAN";
  EXPECT_EQ(frame[70 + 4], 2) << "mode is exclude";
  rte_pktmbuf_free(mbuf);
  EXPECT_THAT(at(announcer, 5 * kSecond), IsEmpty());
}

}  // namespace
}  // namespace warpline::port
