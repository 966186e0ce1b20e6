// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/base/random.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/port/port.h"

namespace warpline::soak {

constexpr std::uint16_t kPorts = 3;
constexpr std::uint16_t kQueues = 2;
constexpr std::size_t kPairs = kPorts * kQueues;
constexpr std::uint16_t kBurst = 32;

/// Every receive or transmit queue has a bit: port * kQueues + queue.
constexpr std::uint32_t bit(std::uint16_t port, std::uint16_t queue) { return 1U << (port * kQueues + queue); }
constexpr std::uint32_t kAll = (1U << kPairs) - 1;

/// What one epoch is like: set up once, then under load.
struct Epoch {
  memory::RecycleWay way;
  bool links;       ///< direct: asked for, not by the first packets
  bool pure;        ///< one pool, nothing shared: fast free is safe
  unsigned clones;  ///< of 1024 packets
  port::PortSettings port;
  std::string devargs;
};
[[nodiscard]] Epoch draw_epoch(Random& random);

/// Three ports whose wires lead back, the pools of what they carry, and the recycler of the lcore that drives them.
class Network {
 public:
  explicit Network(Epoch epoch);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] const Epoch& epoch() const { return epoch_; }
  [[nodiscard]] memory::Recycler* recycler() const { return recycling_.lcores.front().get(); }
  [[nodiscard]] std::uint16_t port(std::uint16_t index) const { return ports_[index].id(); }
  [[nodiscard]] rte_mempool* pool() const { return pool_.get(); }
  [[nodiscard]] rte_mempool* other_pool() const { return other_.get(); }
  [[nodiscard]] rte_mempool* clone_pool() const { return clones_.get(); }
  /// Closes the ports. True when every buffer is in its pool then.
  [[nodiscard]] bool close();

 private:
  Epoch epoch_;
  memory::PacketPool pool_;
  memory::PacketPool other_;
  memory::PacketPool clones_;
  std::vector<port::Port> ports_;
  memory::Recycling recycling_;
};

/// Receives, forwards, clones, holds and drops. One lcore; the control thread takes queues out of use and gives them
/// back.
class Driver {
 public:
  Driver(Network& network, std::uint64_t seed) : network_(network), random_(seed) { change_routes(); }

  /// Until stopped.
  void run();
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t packets() const { return packets_.get(); }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_.get(); }

  /// Control thread: bits of queues that are used; returns when the lcore keeps to it.
  void use(std::uint32_t rx, std::uint32_t tx);

 private:
  static constexpr std::size_t kHeld = 64;
  struct Batch {
    std::uint16_t count = 0;
    std::array<rte_mbuf*, 2 * kBurst> mbufs;
  };

  void round();
  void change_routes();
  void receive(std::size_t rx);
  void pass_on(rte_mbuf* mbuf);
  void add(std::size_t tx, rte_mbuf* mbuf);
  void flush(std::size_t tx);
  void inject();
  void hold(rte_mbuf* mbuf);
  [[nodiscard]] std::size_t route() { return routes_[random_.below(routes_.size())]; }

  Network& network_;
  Random random_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> rx_wanted_{kAll};
  std::atomic<std::uint32_t> tx_wanted_{kAll};
  std::atomic<std::uint64_t> rounds_{0};
  std::uint32_t rx_used_ = kAll;
  std::uint32_t tx_used_ = kAll;
  std::array<std::size_t, 4> routes_{};  ///< a route's share is how often it stands here
  std::array<Batch, kPairs> out_;
  std::array<rte_mbuf*, kHeld> held_{};
  std::size_t next_held_ = 0;
  std::uint64_t next_number_ = 0;
  Counter packets_;
  Counter wrong_;
};

}  // namespace warpline::soak
