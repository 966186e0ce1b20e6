// SPDX-License-Identifier: Apache-2.0
// Buffers outside of EAL's memory: refused until they are registered and mapped, and external they stay.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <stdexcept>
#include <vector>

#include <rte_dev.h>
#include <rte_memory.h>

#include "vnic/api/driver_testing.h"

namespace warpline::vnic {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBytes = 1024 * kPage;

class ExternalMemory {
 public:
  ExternalMemory() : address(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    start_eal();
    if (address == MAP_FAILED || rte_extmem_register(address, kBytes, nullptr, 0, kPage) != 0) {
      throw std::runtime_error("no external memory");
    }
  }
  ~ExternalMemory() {
    rte_extmem_unregister(address, kBytes);
    munmap(address, kBytes);
  }
  ExternalMemory(const ExternalMemory&) = delete;
  ExternalMemory& operator=(const ExternalMemory&) = delete;

  void* address;
};

TEST(ExtmemTest, APoolIsRefusedUntilItsMemoryIsMappedAndItsMbufsStayExternal) {
  const ExternalMemory memory;
  rte_pktmbuf_extmem buffers{};
  buffers.buf_ptr = memory.address;
  buffers.buf_iova = RTE_BAD_IOVA;
  buffers.buf_len = kBytes;
  buffers.elt_size = 4096;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create_extbuf("external", 1000, 0, 0, buffers.elt_size, SOCKET_ID_ANY, &buffers, 1);
  ASSERT_NE(pool, nullptr);
  {
    Port port("net_vnic0");
    EXPECT_EQ(port.configure(pool), -EFAULT);
    rte_eth_dev_info info;
    ASSERT_EQ(rte_eth_dev_info_get(port.id, &info), 0);
    auto* const device = const_cast<rte_device*>(info.device);
    ASSERT_EQ(rte_dev_dma_map(device, memory.address, 0, kBytes), 0);
    EXPECT_NE(rte_dev_dma_map(device, memory.address, 0, kBytes), 0);
    ASSERT_EQ(port.start(pool), 0);
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool);
    std::memset(rte_pktmbuf_append(mbuf, 500), 7, 500);
    for (unsigned round = 0; round < 300; ++round) {
      ASSERT_EQ(port.send(mbuf), 1);
      const std::vector<rte_mbuf*> received = port.receive();
      ASSERT_EQ(received.size(), 1U);
      mbuf = received[0];
      ASSERT_NE(mbuf->ol_flags & RTE_MBUF_F_EXTERNAL, 0U);
      ASSERT_GE(mbuf->buf_addr, memory.address);
      ASSERT_EQ(rte_pktmbuf_mtod(mbuf, const std::uint8_t*)[499], 7);
    }
    rte_pktmbuf_free(mbuf);
    ASSERT_EQ(rte_eth_dev_stop(port.id), 0);
    EXPECT_EQ(rte_dev_dma_unmap(device, memory.address, 0, kBytes), 0);
  }
  EXPECT_EQ(rte_mempool_avail_count(pool), pool->size);
  rte_mempool_free(pool);
}

TEST(ExtmemTest, SendingFromMemoryThatIsNotMappedIsAFault) {
  const Pool pool;
  static std::uint8_t outside[256];
  Port port("net_vnic0");
  ASSERT_EQ(port.start(pool.get()), 0);
  rte_mbuf* const mbuf = pool.make(std::vector<std::uint8_t>(60, 2));
  void* const inside = mbuf->buf_addr;
  mbuf->buf_addr = outside;
  ASSERT_EQ(port.send(mbuf), 1);
  mbuf->buf_addr = inside;
  EXPECT_TRUE(port.receive().empty());
  EXPECT_EQ(port.counts()["tx_iommu_fault"], 1U);
}

}  // namespace
}  // namespace warpline::vnic
