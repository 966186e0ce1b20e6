// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/path_capture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/base/scratch_folder_testing.h"
#include "warpline/capture/pcapng_testing.h"
#include "warpline/datapath/transmit.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/port/ring_pair.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline::datapath {
namespace {

const auto* const kEal =
    testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(0, Bytes{std::uint64_t{1} << 30}));

constexpr std::uint16_t kRing = 64;  // packets that a wire holds
constexpr std::uint16_t kBurst = 40;

/// A path that sends out of the port that it receives from, by its only queues, and the far end of that port's wire.
class PathCaptureTest : public testing::Test {
 protected:
  PathCaptureTest() {
    static int pools = 0;
    pool_.emplace(*memory::PacketPool::make("tapped" + std::to_string(pools++), 1023, 0, 2048, runtime::kAnyNode));
    const auto ids = *port::make_ring_pair(1, kRing, runtime::kAnyNode);
    for (const std::uint16_t id : {ids.first, ids.second}) {
      ports_.push_back(*port::Port::adopt(id));
      EXPECT_TRUE(ports_.back().configure({}, {.rx = 1, .tx = 1}).ok());
      EXPECT_TRUE(ports_.back().attach(pool_->get()).ok());
      EXPECT_TRUE(ports_.back().start().ok());
    }
    QueuePath& path = *paths_.emplace_back(std::make_unique<QueuePath>());
    path.rx = path.tx = path.reply = {ports_[0].id(), 0};
    path.burst = kBurst;
    path.tx_retries = 2;
    taps_.emplace(std::span(ports_).first(1), paths_, std::vector<const TurnCount*>{&turns_}, true);
  }

  void open(const capture::Selection& what, std::uint32_t snaplen = 256) {
    auto opened = PathCapture::open({.file = file_, .what = what, .snaplen = snaplen}, *taps_, "test");
    ASSERT_TRUE(opened) << opened.error().message();
    capture_ = *std::move(opened);
    capture_->start();
  }
  std::vector<capture::ReadPacket> captured() {
    capture_->finish();
    return capture::read_packets(file_);
  }

  /// A packet of `length` bytes that all are `fill`, in pieces of `piece`.
  rte_mbuf* make(std::uint8_t fill, std::uint32_t length = 64, std::uint32_t piece = 1024) {
    rte_mbuf* whole = nullptr;
    for (std::uint32_t at = 0; at < length; at += piece) {
      rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool_->get());
      const auto bytes = static_cast<std::uint16_t>(std::min(piece, length - at));
      std::fill_n(rte_pktmbuf_append(mbuf, bytes), bytes, static_cast<char>(fill));
      if (whole == nullptr) {
        whole = mbuf;
      } else {
        EXPECT_EQ(rte_pktmbuf_chain(whole, mbuf), 0);
      }
    }
    return whole;
  }
  void send_from_far(rte_mbuf* mbuf) { ASSERT_EQ(rte_eth_tx_burst(ports_[1].id(), 0, &mbuf, 1), 1); }
  void empty_far() {
    std::array<rte_mbuf*, kRing> mbufs;
    while (const std::uint16_t count = rte_eth_rx_burst(ports_[1].id(), 0, mbufs.data(), mbufs.size())) {
      rte_pktmbuf_free_bulk(mbufs.data(), count);
    }
  }
  /// Receives kBurst packets and sends them.
  void pass_on() {
    for (std::uint16_t i = 0; i < kBurst; ++i) send_from_far(make(static_cast<std::uint8_t>(i)));
    std::array<rte_mbuf*, kBurst> mbufs;
    ASSERT_EQ(path().receive(mbufs.data(), kBurst), kBurst);
    transmit(path(), path().tx, mbufs.data(), kBurst, 64U * kBurst);
  }
  QueuePath& path() { return *paths_.front(); }
  [[nodiscard]] static auto count(const std::vector<capture::ReadPacket>& packets, std::uint32_t direction,
                                  bool dropped) {
    return std::ranges::count_if(packets, [&](const capture::ReadPacket& packet) {
      return packet.direction == direction && !packet.comment.empty() == dropped;
    });
  }

  ScratchFolder folder_;
  std::string file_ = folder_.path() / "a.pcapng";
  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;
  std::vector<std::unique_ptr<QueuePath>> paths_;
  TurnCount turns_;
  std::optional<PathTaps> taps_;
  std::unique_ptr<PathCapture> capture_;
};

TEST_F(PathCaptureTest, DropsWithTheirReasonsAndNothingElse) {
  open({});
  pass_on();
  pass_on();  // the wire has no room for all of these
  set_aside(path(), make(7), Verdict::ipv4_checksum);
  const auto packets = captured();
  const auto lost = static_cast<std::ptrdiff_t>(path().sent.drops.get(Verdict::tx_full));
  EXPECT_EQ(lost, 2 * kBurst - kRing);
  EXPECT_EQ(count(packets, 2, true), lost);
  EXPECT_EQ(std::ssize(packets), lost + 1);
  EXPECT_EQ(packets.front().comment, "tx_full: the transmit queue stayed full for all retries");
  EXPECT_EQ(packets.back().comment, "ipv4_checksum: wrong IPv4 header checksum");
  EXPECT_EQ(packets.back().direction, 1U);
  EXPECT_EQ(packets.back().bytes, std::string(64, '\7'));
}

TEST_F(PathCaptureTest, AllAsItCameAndAsItWasOfferedOnce) {
  open({.dropped_only = false});
  pass_on();
  pass_on();
  ASSERT_NE(path().sent.retries.get(), 0U);  // some were offered several times
  empty_far();
  pass_on();
  const auto packets = captured();
  EXPECT_EQ(count(packets, 1, false), 3 * kBurst);
  EXPECT_EQ(count(packets, 2, false), 3 * kBurst);
  EXPECT_EQ(count(packets, 2, true), static_cast<std::ptrdiff_t>(path().sent.drops.get(Verdict::tx_full)));
}

TEST_F(PathCaptureTest, AfterItsEndNothingIsCopied) {
  open({.dropped_only = false});
  const std::size_t before = captured().size();
  pass_on();
  set_aside(path(), make(1), Verdict::runt);
  EXPECT_EQ(capture_->totals().packets, before);
  EXPECT_EQ(capture_->totals().left_out(), 0U);
}

TEST_F(PathCaptureTest, PacketsInPieces) {
  open({}, 100);
  set_aside(path(), make(1, 64, 10), Verdict::runt);
  set_aside(path(), make(2, 400, 30), Verdict::too_many_segments);
  const auto packets = captured();
  ASSERT_EQ(packets.size(), 2U);
  EXPECT_EQ(packets[0].bytes, std::string(64, '\1'));
  EXPECT_EQ(packets[1].bytes, std::string(100, '\2'));
  EXPECT_EQ(packets[1].length, 400U);
}

}  // namespace
}  // namespace warpline::datapath
