// SPDX-License-Identifier: Apache-2.0
// Packets in every kind of memory, whole and split, through ports of the software NIC. Ordinary memory plays a GPU's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/base/device/unreachable_memory_testing.h"
#include "warpline/memory/gpu_memory_testing.h"
#include "warpline/memory/port_pools.h"
#include "warpline/port/port.h"
#include "warpline/port/vnic.h"
#include "warpline/runtime/eal_environment.h"
#include "warpline/runtime/port_spec.h"

namespace warpline {
namespace {

using testing::HasSubstr;

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(1));

constexpr std::uint32_t kBuffers = 1023;
constexpr std::uint16_t kBurst = 32;
constexpr std::uint32_t kFrames = 2000;

memory::PortPoolsPlan plan_of(memory::MemoryKind memory, std::uint16_t split) {
  memory::PortPoolsPlan plan;
  plan.name = "near";
  plan.settings.memory = memory;
  plan.settings.split = split;
  plan.settings.cache = 32;
  plan.size = kBuffers;
  plan.data_room = 2048;
  return plan;
}

port::PortSettings port_config(const std::string& spec, std::uint16_t mtu = 1500) {
  port::PortSettings config;
  config.spec = spec;
  config.rx_ring = config.tx_ring = 128;
  config.mtu = mtu;
  return config;
}

/// Frame `number`: from 60 bytes to the MTU's most, each byte depending on both.
std::vector<std::uint8_t> frame(std::uint32_t number, std::uint16_t mtu = 1500) {
  std::vector<std::uint8_t> bytes(60 + number * 37 % (mtu + 14U - 59U));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(std::size_t{number} * 7 + i * 13);
  return bytes;
}

std::vector<std::uint8_t> bytes_of(const rte_mbuf* mbuf) {
  std::vector<std::uint8_t> bytes;
  for (; mbuf != nullptr; mbuf = mbuf->next) {
    const auto* const data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    bytes.insert(bytes.end(), data, data + mbuf->data_len);
  }
  return bytes;
}

/// Two ports with a wire between them: the near one with the pools that a test asks for, the far one with host memory.
class Pair {
 public:
  Result<void> open(const memory::PortPoolsPlan& plan, std::uint16_t mtu = 1500, bool map = true) {
    WARPLINE_TRY(port::Port near, port::Port::open("net_vnic0,wire=net_vnic1,buffer=16777216" + near_arguments));
    WARPLINE_CHECK(near.configure(port_config("net_vnic0", mtu), {.rx = plan.queues, .tx = 1, .one_pool = true}));
    WARPLINE_TRY(memory::PortPools pools, memory::PortPools::make(plan, gpus.memory()));
    near_pools.emplace(std::move(pools));
    near_.emplace(std::move(near));
    for (const std::span<std::byte> memory : near_pools->external()) {
      if (map) WARPLINE_CHECK(near_->map(memory));
    }
    WARPLINE_CHECK(near_->attach(near_pools->queues()));
    WARPLINE_CHECK(near_->start());
    WARPLINE_TRY(port::Port far, port::Port::open("net_vnic1,wire=net_vnic0,buffer=16777216"));
    WARPLINE_CHECK(far.configure(port_config("net_vnic1", mtu), {.rx = 1, .tx = 1}));
    WARPLINE_TRY(memory::PacketPool pool, memory::PacketPool::make({"far", kBuffers, 32, std::uint32_t{mtu} + 64}));
    far_pool.emplace(std::move(pool));
    far_.emplace(std::move(far));
    WARPLINE_CHECK(far_->attach(far_pool->get()));
    return far_->start();
  }

  /// Pools go last: no device may hold on to their memory.
  ~Pair() {
    close();
    EXPECT_EQ(near_pools ? near_pools->in_use() : 0, 0U);
    EXPECT_EQ(far_pool ? far_pool->in_use() : 0, 0U);
  }
  void close() {
    near_.reset();
    far_.reset();
  }

  [[nodiscard]] port::Port& near() { return *near_; }
  [[nodiscard]] port::Port& far() { return *far_; }

  std::string near_arguments;
  memory::MadeUpGpus gpus;
  std::optional<memory::PortPools> near_pools;
  std::optional<memory::PacketPool> far_pool;

 private:
  std::optional<port::Port> near_;
  std::optional<port::Port> far_;
};

rte_mbuf* made_of(rte_mempool* pool, const std::vector<std::uint8_t>& bytes) {
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
  if (mbuf != nullptr)
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
  return mbuf;
}

/// Every frame goes far to near, is looked at by `inspect`, and back, and is compared there.
template <typename Inspect>
void echo(Pair& pair, std::uint16_t mtu, Inspect inspect) {
  std::uint32_t sent = 0;
  std::uint32_t back = 0;
  rte_mbuf* burst[kBurst];
  for (std::uint64_t rounds = 0; back < kFrames; ++rounds) {
    ASSERT_LT(rounds, 1'000'000U) << back << " of " << kFrames << " came back";
    if (sent < kFrames && sent - back < 64) {
      rte_mbuf* mbuf = made_of(pair.far_pool->get(), frame(sent, mtu));
      ASSERT_NE(mbuf, nullptr);
      if (rte_eth_tx_burst(pair.far().id(), 0, &mbuf, 1) == 1) {
        ++sent;
      } else {
        rte_pktmbuf_free(mbuf);
      }
    }
    const std::uint16_t received = rte_eth_rx_burst(pair.near().id(), 0, burst, kBurst);
    for (std::uint16_t i = 0; i < received; ++i) inspect(burst[i]);
    std::uint16_t taken = 0;
    while (taken < received) taken += rte_eth_tx_burst(pair.near().id(), 0, burst + taken, received - taken);
    const std::uint16_t returned = rte_eth_rx_burst(pair.far().id(), 0, burst, kBurst);
    for (std::uint16_t i = 0; i < returned; ++i) {
      ASSERT_EQ(bytes_of(burst[i]), frame(back++, mtu));
      rte_pktmbuf_free(burst[i]);
    }
  }
}

struct Kind {
  memory::MemoryKind memory;
  std::uint16_t split;
  std::uint16_t mtu;
};

class Kinds : public testing::TestWithParam<Kind> {};

TEST_P(Kinds, EveryByteGoesThroughAndEveryBufferComesBack) {
  const auto [memory, split, mtu] = GetParam();
  Pair pair;
  memory::PortPoolsPlan plan = plan_of(memory, split);
  plan.data_room = memory::data_room(mtu);
  const auto opened = pair.open(plan, mtu);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const bool external = memory == memory::MemoryKind::device;
  EXPECT_EQ(pair.gpus.allocated != 0, external);
  EXPECT_EQ(pair.gpus.pinned != 0, memory == memory::MemoryKind::pinned || (external && split != 0));
  EXPECT_EQ(pair.near().setup().device_access, external ? "as net_vnic maps it" : "");
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_EQ(has(pair.near().setup().rx_offloads, "buffer_split"), split != 0);
  EXPECT_EQ(has(pair.near().setup().rx_offloads, "scatter"), split != 0) << "mlx5 splits no frame without";
  EXPECT_EQ(has(pair.near().setup().tx_offloads, "mbuf_fast_free"), split == 0 && !external);
  echo(pair, mtu, [&, limit = split](const rte_mbuf* mbuf) {
    if (limit == 0 || mbuf->pkt_len <= limit) {
      const port::RxPools& pools = pair.near_pools->queues()[0];
      EXPECT_EQ(mbuf->nb_segs, 1);
      EXPECT_EQ(mbuf->pool, limit == 0 ? pools.payload : pools.header);
      return;
    }
    ASSERT_EQ(mbuf->nb_segs, 2);
    EXPECT_EQ(mbuf->data_len, limit);
    EXPECT_EQ(mbuf->pool, pair.near_pools->queues()[0].header);
    EXPECT_EQ(mbuf->next->pool, pair.near_pools->queues()[0].payload);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rte_pktmbuf_mtod(mbuf->next, void*)) % 64, 0U);
    EXPECT_TRUE(RTE_MBUF_DIRECT(mbuf)) << "headers are where the CPU reads them";
    EXPECT_EQ(RTE_MBUF_HAS_PINNED_EXTBUF(mbuf->next), external);
  });
}

std::string name_of(const testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"host", "pinned", "device"};
  const auto& [memory, split, mtu] = info.param;
  return std::string(kNames[static_cast<std::size_t>(memory)]) + "_split" + std::to_string(split) + "_mtu" +
         std::to_string(mtu);
}

INSTANTIATE_TEST_SUITE_P(
    Memory, Kinds,
    testing::Values(Kind{memory::MemoryKind::host, 0, 1500}, Kind{memory::MemoryKind::host, 60, 1500},
                    Kind{memory::MemoryKind::pinned, 0, 1500}, Kind{memory::MemoryKind::pinned, 60, 1500},
                    Kind{memory::MemoryKind::pinned, 0, 9000}, Kind{memory::MemoryKind::device, 0, 1500},
                    Kind{memory::MemoryKind::device, 60, 1500}, Kind{memory::MemoryKind::device, 0, 9000},
                    Kind{memory::MemoryKind::device, 128, 9000}, Kind{memory::MemoryKind::device, 22, 1500}),
    name_of);

/// Devices count the room of a buffer in units, and scatter what does not fit into whole ones, asked or not.
TEST(BufferUnits, AFrameOfTheMtuLiesInOneBuffer) {
  for (const std::uint16_t unit : {128, 1024}) {
    for (const std::uint16_t mtu : {1500, 4000, 9000}) {
      SCOPED_TRACE(std::to_string(unit) + ", MTU " + std::to_string(mtu));
      Pair pair;
      pair.near_arguments = ",rx_buffer_unit=" + std::to_string(unit);
      memory::PortPoolsPlan plan = plan_of(memory::MemoryKind::host, 0);
      plan.data_room = memory::data_room(mtu);
      const auto opened = pair.open(plan, mtu);
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      echo(pair, mtu, [](const rte_mbuf* mbuf) { EXPECT_EQ(mbuf->nb_segs, 1); });
    }
  }
}

TEST(BufferUnits, WhatMayBeScatteredMayBeSentInPieces) {
  Pair pair;
  pair.near_arguments = ",rx_buffer_unit=1024";
  memory::PortPoolsPlan plan = plan_of(memory::MemoryKind::host, 0);
  plan.data_room = 4032;  // holds the frame, in three KiB and a rest
  const auto opened = pair.open(plan, 4000);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  const std::vector<std::string>& rx = pair.near().setup().rx_offloads;
  const std::vector<std::string>& tx = pair.near().setup().tx_offloads;
  EXPECT_EQ(std::ranges::count(rx, "scatter"), 1);
  EXPECT_EQ(std::ranges::count(tx, "multi_segs"), 1);
  std::uint32_t scattered = 0;
  echo(pair, 4000, [&](const rte_mbuf* mbuf) { scattered += mbuf->nb_segs == 2; });
  EXPECT_GT(scattered, 0U);
}

TEST(PoolsOfQueues, EachQueueFillsFromItsOwn) {
  Pair pair;
  memory::PortPoolsPlan plan = plan_of(memory::MemoryKind::device, 60);
  plan.queues = 2;
  plan.settings.sharing = memory::PoolSharing::queue;
  plan.gpus = {0, 1};
  const auto opened = pair.open(plan);
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(pair.near_pools->external().size(), 2U);
  for (const port::RxPools& pools : pair.near_pools->queues()) {
    EXPECT_GT(rte_mempool_in_use_count(pools.payload), 0U) << "its ring is filled";
    EXPECT_GT(rte_mempool_in_use_count(pools.header), 0U);
  }
}

TEST(DeviceMemory, ThatWasNotMappedIsRefused) {
  Pair pair;
  const auto opened = pair.open(plan_of(memory::MemoryKind::device, 0), 1500, false);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::environment);
  EXPECT_THAT(opened.error().message(), HasSubstr("rte_dev_dma_map"));
}

TEST(DeviceMemory, CanBeMappedAgainOnceItsPortIsClosed) {
  for (int i = 0; i < 3; ++i) {
    Pair pair;
    const auto opened = pair.open(plan_of(memory::MemoryKind::device, 60));
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    pair.close();
    EXPECT_GT(pair.gpus.allocated, 0U) << "it is the pool's, not the port's";
  }
}

/// Plays a NIC's DMA engine for memory that ends whoever touches it.
struct ReachingCopies {
  const UnreachableMemory& memory;
  std::deque<std::uint64_t> landed;

  [[nodiscard]] rte_net_vnic_copy_engine engine() {
    return {this,
            [](void* self, rte_net_vnic_direction, std::uint16_t) -> void* {
              auto& copies = *static_cast<ReachingCopies*>(self);
              return new Lane{copies.memory, copies.landed.emplace_back(0)};
            },
            [](void* lane) { delete static_cast<Lane*>(lane); },
            [](void* opaque, const rte_net_vnic_copy* copies, std::uint32_t count) {
              Lane& lane = *static_cast<Lane*>(opaque);
              for (std::uint32_t i = 0; i < count; ++i) {
                std::memcpy(lane.memory.reach(copies[i].to), lane.memory.reach(copies[i].from), copies[i].length);
              }
              ++lane.landed;
              return 0;
            },
            [](void* lane) { return static_cast<Lane*>(lane)->landed; }};
  }

 private:
  struct Lane {
    const UnreachableMemory& memory;
    std::uint64_t& landed;
  };
};

/// A ConnectX of eight transmit queues and more copies short frames with the CPU, unless it is told not to.
TEST(DeviceMemory, IsReadByNoCpu) {
  constexpr std::uint16_t kQueues = 8;
  const UnreachableMemory gpu(std::size_t{32} << 20);
  const auto allocate = [&](int, Bytes size, Bytes alignment) -> Result<memory::OwnedMemory> {
    auto* const all = reinterpret_cast<std::byte*>(gpu.device().data());
    const std::size_t skip = alignment.value - reinterpret_cast<std::uintptr_t>(all) % alignment.value;
    EXPECT_LE(skip + size.value, gpu.device().size());
    return memory::OwnedMemory{{all + skip, size.value}, std::make_shared<int>()};
  };
  memory::PortPoolsPlan plan = plan_of(memory::MemoryKind::device, 0);
  plan.size = 4095;
  plan.queues = kQueues;
  const auto pools = memory::PortPools::make(plan, {.allocate = allocate, .pin = {}});
  ASSERT_TRUE(pools.ok()) << pools.error().message();
  ReachingCopies copies{gpu, {}};
  const rte_net_vnic_copy_engine engine = copies.engine();
  auto port = port::Port::open(runtime::without_inlining("net_vnic0,persona=mlx5"));
  ASSERT_TRUE(port.ok()) << port.error().message();
  ASSERT_TRUE(port->configure(port_config("net_vnic0"), {.rx = kQueues, .tx = kQueues}).ok());
  ASSERT_TRUE(port->map(pools->external().front()).ok());
  ASSERT_TRUE(port->attach(pools->queues()).ok());
  ASSERT_EQ(port::vnic_calls()->set_copy_engine(port->id(), &engine), 0);
  ASSERT_TRUE(port->start().ok());
  std::uint32_t back = 0;
  for (std::uint32_t sent = 0; sent < 100; ++sent) {
    const std::vector<std::uint8_t> bytes = frame(sent);
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pools->queues()[0].payload);
    ASSERT_NE(mbuf, nullptr);
    mbuf->pkt_len = mbuf->data_len = static_cast<std::uint16_t>(bytes.size());
    std::memcpy(gpu.reach(rte_pktmbuf_mtod(mbuf, void*)), bytes.data(), bytes.size());
    ASSERT_EQ(rte_eth_tx_burst(port->id(), 0, &mbuf, 1), 1);
    rte_mbuf* received[kBurst];
    std::uint16_t count = 0;
    for (int polls = 0; polls < 100 && count == 0; ++polls) {
      count = rte_eth_rx_burst(port->id(), 0, received, kBurst);
    }
    ASSERT_EQ(count, 1);
    EXPECT_EQ(std::memcmp(gpu.reach(rte_pktmbuf_mtod(received[0], void*)), bytes.data(), bytes.size()), 0);
    rte_pktmbuf_free(received[0]);
    ++back;
  }
  EXPECT_EQ(back, 100U);
}

TEST(DeviceMemory, IsRefusedByNicsWhoseDriversReadIt) {
  memory::MadeUpGpus gpus;
  for (const std::string persona : {"ena", "virtio", "vmxnet3", "gve"}) {
    SCOPED_TRACE(persona);
    Pair pair;
    pair.near_arguments = ",persona=" + persona;
    const auto opened = pair.open(plan_of(memory::MemoryKind::device, 0), 1460);
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().message(), HasSubstr("ports cannot reach it; use -m pinned"));
  }
}

TEST(Buffers, AreAsManyAsTheRingsThatADriverMakesOfThoseAskedFor) {
  port::PortSettings config = port_config("net_vnic0");
  config.rx_ring = 1025;
  config.tx_ring = 600;
  auto opened = *port::Port::open("net_vnic0,persona=mlx5");
  ASSERT_TRUE(opened.configure(config, {}).ok());
  EXPECT_EQ(opened.settings_in_force().rx_ring, 2048);
  EXPECT_EQ(opened.settings_in_force().tx_ring, 1024);
  EXPECT_EQ(opened.setup().rx_ring, 1025) << "what it was set up with";
}

TEST(Buffers, ThatADeviceDoesNotTakeAreRefused) {
  struct Refusal {
    std::string persona;
    std::uint32_t room;
    std::uint16_t mtu;
    std::string why;
  };
  for (const Refusal& refusal :
       {Refusal{"ixgbe", 512, 1500,
                "buffers of 512 bytes: the device takes none of less than 1024; use `--data-room 1024`"},
        Refusal{"ice", 1024, 9000, "the device sends a frame in 8 pieces at most, not in 9; use `--data-room 1129`"},
        Refusal{"ena", 256, 1500, "256 bytes are less than the 1400 that ena wants of a buffer"}}) {
    SCOPED_TRACE(refusal.persona);
    Pair pair;
    pair.near_arguments = ",persona=" + refusal.persona;
    memory::PortPoolsPlan plan = plan_of(memory::MemoryKind::host, 0);
    plan.data_room = refusal.room;
    const auto opened = pair.open(plan, refusal.mtu);
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().message(), HasSubstr(refusal.why));
  }
}

TEST(DeviceMemory, IsRefusedByADeviceThatCannotReachIt) {
  memory::MadeUpGpus gpus;
  const auto pools = memory::PortPools::make(plan_of(memory::MemoryKind::device, 0), gpus.memory());
  ASSERT_TRUE(pools.ok());
  auto port = port::Port::open("net_null0");
  ASSERT_TRUE(port.ok());
  ASSERT_TRUE(port->configure(port_config("net_null0"), {}).ok());
  const auto mapped = port->map(pools->external().front());
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().kind, ErrorKind::environment);
  EXPECT_EQ(mapped.error().message(),
            "port net_null0: 4 MiB of GPU memory: net_null ports cannot reach it; use -m pinned, or a port such as "
            "net_vnic0 or a ConnectX");
}

TEST(Split, IsRefusedByADeviceThatCannot) {
  memory::MadeUpGpus gpus;
  const auto pools = memory::PortPools::make(plan_of(memory::MemoryKind::host, 60), gpus.memory());
  ASSERT_TRUE(pools.ok());
  auto port = port::Port::open("net_null0");
  ASSERT_TRUE(port.ok());
  ASSERT_TRUE(port->configure(port_config("net_null0"), {}).ok());
  const auto attached = port->attach(pools->queues());
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().kind, ErrorKind::usage);
  EXPECT_THAT(attached.error().message(), HasSubstr("port net_null0: --split: the device does not"));
}

}  // namespace
}  // namespace warpline
