// SPDX-License-Identifier: Apache-2.0
#pragma once

// net_vnic ports for tests, reached through plain ethdev calls; and, against the rules of applications, what stands in
// their rings.

#include <cstdint>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "vnic/device/device.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {

/// A pool of mbufs of its own.
class Pool {
 public:
  explicit Pool(unsigned mbufs = 2047, std::uint16_t room = 2048, unsigned cache = 32);
  /// Makes a pool with buffers outside the mbufs: `memory` is the program's, with its own page size.
  Pool(unsigned mbufs, void* memory, std::size_t length, std::uint16_t element);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] unsigned in_use() const { return rte_mempool_in_use_count(pool_); }

  /// A new mbuf chain with these bytes, `lengths` long each but for the last, which takes the rest.
  [[nodiscard]] rte_mbuf* chain(const packet::FrameBytes& bytes, const std::vector<std::uint32_t>& lengths = {}) const;

 private:
  rte_mempool* pool_;
};

using Frames = std::vector<packet::FrameBytes>;

/// A chain's bytes.
[[nodiscard]] packet::FrameBytes bytes_of(const rte_mbuf* mbuf);
/// The same, and the chain is freed.
[[nodiscard]] packet::FrameBytes taken(rte_mbuf* mbuf);

/// What a port is configured with; the pool is that of all queues without segments of their own.
struct PortSetup {
  std::uint16_t rx_queues = 1;
  std::uint16_t tx_queues = 1;
  std::uint16_t rx_ring = 256;
  std::uint16_t tx_ring = 256;
  rte_eth_conf conf{};
  rte_eth_rxconf rx{};
  rte_eth_txconf tx{};
  rte_mempool* pool = nullptr;
  std::vector<rte_eth_rxseg_split> split;
  bool promiscuous = true;
};

/// All defaults but the pool and the number of queue pairs.
inline PortSetup simple(const Pool& pool, std::uint16_t queues = 1) {
  PortSetup setup;
  setup.pool = pool.get();
  setup.rx_queues = setup.tx_queues = queues;
  return setup;
}

/// A port from probe to close.
class Port {
 public:
  explicit Port(std::string name, const std::string& args = "");
  ~Port() { close(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// 0, or what the probe failed with.
  [[nodiscard]] int probed() const { return probed_; }
  [[nodiscard]] std::uint16_t id() const { return id_; }
  [[nodiscard]] Device& device() const { return device_of(&rte_eth_devices[id_]); }

  int configure(const PortSetup& setup);
  /// configure() and start.
  void bring_up(const PortSetup& setup);
  void close();

  /// Sends all, calling anew while the ring is full. Returns those sent, less than all when it stays full.
  std::uint16_t send(rte_mbuf** mbufs, std::uint16_t count, std::uint16_t queue = 0) const;
  void send(const Pool& pool, const packet::FrameBytes& frame, std::uint16_t queue = 0) const;
  /// Up to `most` mbufs.
  [[nodiscard]] std::vector<rte_mbuf*> receive(std::uint16_t queue = 0, std::uint16_t most = 32) const;
  /// The next frame, or null.
  [[nodiscard]] rte_mbuf* receive_one(std::uint16_t queue = 0) const;
  /// All frames of a queue that are there, as bytes.
  [[nodiscard]] Frames receive_all(std::uint16_t queue = 0) const;

  /// An extended statistic; fails the test when there is none of that name.
  [[nodiscard]] std::uint64_t xstat(const std::string& name) const;
  [[nodiscard]] std::uint64_t count(Count which) const { return xstat(kCountNames[static_cast<unsigned>(which)]); }
  [[nodiscard]] rte_eth_stats stats() const;

  /// Mbufs of `pool` that stand in the port's rings. Fails the test when one stands there twice.
  [[nodiscard]] unsigned held(const Pool& pool) const;

 private:
  std::string name_;
  int probed_ = -1;
  std::uint16_t id_ = RTE_MAX_ETHPORTS;
};

/// Every mbuf of the pool is in one of the ports' rings, once, or in the pool, but for `elsewhere`.
void expect_accounted(const Pool& pool, const std::vector<const Port*>& ports, unsigned elsewhere = 0);

/// EAL and ethdev tell of refusals that a test is about: not while this lives.
class QuietLog {
 public:
  QuietLog();
  ~QuietLog();
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  std::uint32_t before_;
};

/// A numbered UDP frame of `length` bytes.
[[nodiscard]] packet::FrameBytes numbered(std::uint32_t number, std::size_t length = 64);

/// Sends frames one by one, each in a burst of its own; what comes back is dropped.
inline void send_frames(const Port& port, const Pool& pool, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) port.send(pool, numbered(i));
  for (rte_mbuf* const mbuf : port.receive(0, 64)) rte_pktmbuf_free(mbuf);
}

}  // namespace warpline::vnic
