// SPDX-License-Identifier: Apache-2.0
// Memory outside of EAL, payload that the CPU does not move, and recycling.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include <rte_dev.h>

#include "port.h"
#include "warpline/vnic/recycle_ops.h"

namespace warpline::vnic {
namespace {

/// Pages of the program's own, as a GPU driver would hand them out.
class Pages {
 public:
  explicit Pages(std::size_t length) : length_(length) {
    address_ = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(address_, MAP_FAILED);
  }
  ~Pages() { munmap(address_, length_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] void* address() const { return address_; }
  [[nodiscard]] std::size_t length() const { return length_; }

 private:
  void* address_;
  std::size_t length_;
};

rte_device* device_of_port(const Port& port) {
  rte_eth_dev_info info{};
  EXPECT_EQ(rte_eth_dev_info_get(port.id(), &info), 0);
  return info.device;
}

/// Pages that DPDK knows and that the port may touch, while this lives.
class Mapping {
 public:
  Mapping(const Port& port, const Pages& pages) : device_(device_of_port(port)), pages_(pages) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    EXPECT_EQ(rte_extmem_register(pages.address(), pages.length(), nullptr, 0, page), 0) << rte_strerror(rte_errno);
    EXPECT_EQ(rte_dev_dma_map(device_, pages.address(), iova(), pages.length()), 0) << rte_strerror(rte_errno);
  }
  ~Mapping() {
    EXPECT_EQ(rte_dev_dma_unmap(device_, pages_.address(), iova(), pages_.length()), 0);
    EXPECT_EQ(rte_extmem_unregister(pages_.address(), pages_.length()), 0);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

 private:
  [[nodiscard]] std::uint64_t iova() const { return reinterpret_cast<std::uintptr_t>(pages_.address()); }
  rte_device* device_;
  const Pages& pages_;
};

constexpr std::uint16_t kElement = 2048 + RTE_PKTMBUF_HEADROOM;

PortSetup small_rings(const Pool& pool) {
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_ring = setup.tx_ring = 64;
  return setup;
}

TEST(ExternalBuffers, ThatArePinnedStayExternal) {
  const Pages pages(1 << 20);
  const Pool senders;
  Port port("net_vnic0");
  {
    const Mapping mapping(port, pages);
    const Pool pool(255, pages.address(), pages.length(), kElement);
    for (const std::uint64_t offloads :
         {std::uint64_t{0}, std::uint64_t{RTE_ETH_RX_OFFLOAD_IPV4_CKSUM}, std::uint64_t{RTE_ETH_RX_OFFLOAD_SCATTER}}) {
      PortSetup setup = small_rings(pool);
      setup.conf.rxmode.offloads = offloads;
      port.bring_up(setup);
      for (std::uint32_t i = 0; i < 500; ++i) {
        port.send(senders, numbered(i));
        rte_mbuf* const mbuf = port.receive_one();
        ASSERT_NE(mbuf, nullptr);
        EXPECT_TRUE(RTE_MBUF_HAS_EXTBUF(mbuf));
        EXPECT_TRUE(RTE_MBUF_HAS_PINNED_EXTBUF(mbuf));
        EXPECT_GE(mbuf->buf_addr, pages.address());
        EXPECT_EQ(bytes_of(mbuf), numbered(i));
        // A clone and its original go back each to its own.
        rte_mbuf* const clone = rte_pktmbuf_clone(mbuf, senders.get());
        rte_pktmbuf_free(mbuf);
        EXPECT_EQ(taken(clone), numbered(i));
      }
      expect_accounted(pool, {&port});
      ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    }
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

TEST(ExternalBuffers, ThatTheDeviceMayNotTouchAreRefused) {
  const QuietLog quiet;
  const Pages pages(1 << 20);
  Port port("net_vnic0");
  const Pool pool(255, pages.address(), pages.length(), kElement);
  EXPECT_EQ(port.configure(small_rings(pool)), -EFAULT);
  {
    const Mapping mapping(port, pages);
    EXPECT_EQ(port.configure(small_rings(pool)), 0);
  }
  EXPECT_EQ(port.configure(small_rings(pool)), -EFAULT);
}

TEST(ExternalBuffers, AreMappedOnceEach) {
  const Pages pages(1 << 16);
  const Port port("net_vnic0");
  rte_device* const device = device_of_port(port);
  const auto iova = reinterpret_cast<std::uintptr_t>(pages.address());
  const Mapping mapping(port, pages);
  EXPECT_EQ(rte_dev_dma_map(device, pages.address(), iova, pages.length()), -1);
  EXPECT_EQ(rte_errno, EEXIST);
  EXPECT_EQ(rte_dev_dma_unmap(device, pages.address(), iova, 4096), -1);
  EXPECT_EQ(rte_errno, ENOENT);
}

TEST(ExternalBuffers, OfNobodyAreAFaultWhenSent) {
  const Pages pages(1 << 16);
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(small_rings(pool));
  std::uint16_t length = 4096;
  rte_mbuf_ext_shared_info* const shared = rte_pktmbuf_ext_shinfo_init_helper(
      pages.address(), &length, [](void*, void* freed) { ++*static_cast<int*>(freed); }, nullptr);
  int freed = 0;
  shared->fcb_opaque = &freed;
  rte_mbuf* mbufs[3] = {pool.chain(numbered(1)), rte_pktmbuf_alloc(pool.get()), pool.chain(numbered(3))};
  rte_pktmbuf_attach_extbuf(mbufs[1], pages.address(), RTE_BAD_IOVA, length, shared);
  mbufs[1]->data_len = 100;
  mbufs[1]->pkt_len = 100;
  ASSERT_EQ(port.send(mbufs, 3), 3);
  EXPECT_EQ(port.receive_all(), (Frames{numbered(1), numbered(3)}));
  EXPECT_EQ(port.count(Count::tx_iommu_fault), 1U);
  EXPECT_EQ(port.stats().oerrors, 1U);
  port.close();
  EXPECT_EQ(freed, 1) << "its owner gets it back all the same";
}

TEST(ExternalBuffers, ThatAreUnmappedUnderTrafficAreAFaultAndNoCrash) {
  const Pages pages(1 << 20);
  const Pool senders;
  Port port("net_vnic0");
  const Pool pool(255, pages.address(), pages.length(), kElement);
  {
    const Mapping mapping(port, pages);
    port.bring_up(small_rings(pool));
    port.send(senders, numbered(1));
    EXPECT_EQ(port.receive_all().size(), 1U);
  }
  port.send(senders, numbered(2));
  EXPECT_EQ(port.receive_all().size(), 0U);
  EXPECT_EQ(port.count(Count::rx_iommu_fault), 1U);
  port.close();
}

TEST(Recycling, PostsWhatWasSent) {
  const Pool pool;
  Port port("net_vnic0");
  PortSetup setup = small_rings(pool);
  setup.rx_ring = setup.tx_ring = 256;
  setup.rx.rx_free_thresh = 64;
  setup.tx.tx_rs_thresh = 32;
  setup.tx.tx_free_thresh = 224;
  port.bring_up(setup);
  const std::uint64_t posted_first = 256;
  std::uint32_t recycled = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    rte_mbuf* mbuf = pool.chain(numbered(i));
    recycled += rte_net_vnic_recycle_mbufs(port.id(), 0, port.id(), 0);
    ASSERT_EQ(port.send(&mbuf, 1), 1);
    for (rte_mbuf* const arrived : port.receive()) EXPECT_EQ(taken(arrived), numbered(i));
    expect_accounted(pool, {&port});
  }
  EXPECT_GT(recycled, 1000U);
  EXPECT_EQ(port.count(Count::recycled), recycled);
  EXPECT_GE(port.device().rx[0]->refilled, posted_first + recycled);
}

TEST(Recycling, RefusesByReason) {
  const Pool pool;
  const Pool other;
  Port port("net_vnic0", "wire=sink");
  PortSetup setup = small_rings(pool);
  setup.rx_ring = 256;
  setup.tx_ring = 128;
  setup.tx.tx_rs_thresh = 32;
  port.bring_up(setup);
  const auto recycle = [&] { return rte_net_vnic_recycle_mbufs(port.id(), 0, port.id(), 0); };
  EXPECT_EQ(recycle(), 0);
  EXPECT_EQ(port.count(Count::recycle_refused_threshold), 1U) << "no batch was sent";
  for (std::uint32_t i = 0; i < 32; ++i) port.send(pool, numbered(i));
  EXPECT_EQ(recycle(), 0);
  EXPECT_EQ(port.count(Count::recycle_refused_full), 1U) << "the receive ring is full";
  expect_accounted(pool, {&port});
  port.close();

  Port source("net_vnic1", "wire=source");
  setup.rx.rx_free_thresh = 128;
  source.bring_up(setup);
  for (rte_mbuf* const mbuf : source.receive(0, 64)) rte_pktmbuf_free(mbuf);
  std::vector<rte_mbuf*> kept;
  for (std::uint32_t i = 0; i < 32; ++i) {
    rte_mbuf* mbuf = (i % 4 == 0 ? other : pool).chain(numbered(i));
    if (i % 4 == 1) {
      rte_mbuf_refcnt_update(mbuf, 1);
      kept.push_back(mbuf);
    }
    ASSERT_EQ(source.send(&mbuf, 1), 1);
  }
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(source.id(), 0, source.id(), 0), 16);
  EXPECT_EQ(source.count(Count::recycle_refused_pool), 8U);
  EXPECT_EQ(source.count(Count::recycle_refused_shared), 8U);
  EXPECT_EQ(other.in_use(), 0U);
  expect_accounted(pool, {&source}, 8);
  rte_pktmbuf_free_bulk(kept.data(), static_cast<unsigned>(kept.size()));
}

TEST(Recycling, OfPortsThatAreNotRunningDoesNothing) {
  const Pool pool;
  Port port("net_vnic0");
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id(), 0, port.id(), 0), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(31, 0, 31, 0), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(65535, 65535, 65535, 65535), 0);
  PortSetup setup = small_rings(pool);
  setup.tx_queues = 0;
  port.bring_up(setup);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id(), 0, port.id(), 0), 0) << "there is no queue to take from";
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  setup.tx_queues = 1;
  port.bring_up(setup);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id(), 1, port.id(), 1), 0);
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  EXPECT_EQ(rte_net_vnic_recycle_mbufs(port.id(), 0, port.id(), 0), 0);
}

}  // namespace
}  // namespace warpline::vnic
