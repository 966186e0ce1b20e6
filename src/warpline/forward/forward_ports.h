// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/forward/forwarder.h"
#include "warpline/forward/nic_copies.h"
#include "warpline/memory/port_pools.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/port/port.h"
#include "warpline/port/vnic.h"

namespace warpline::forward {

/// What the far side of a loopback sends.
struct FarTraffic {
  std::uint32_t max_frame = 0;  ///< bytes of the longest frame
  std::uint16_t burst = 0;      ///< frames sent at once, at most
  bool closed_loop = false;     ///< at most window() frames of each queue are in flight
};

/// The ports of a `forward` run and the pools that they receive into; with --loopback two, of which the first is
/// forwarded on and the second is the far side: those that are given, or else a pair of net_vnic, or of rings in a
/// program without it. One that is given is both: what the far side sends there comes back to it. Ports close before
/// the pools go.
class ForwardPorts {
 public:
  /// `layout` outlives the ports.
  ForwardPorts(const datapath::DatapathSettings& settings, const datapath::ForwardLayout& layout,
               const FarTraffic& far_traffic)
      : settings_(settings),
        layout_(layout),
        far_traffic_(far_traffic),
        hands_over_(settings.own_loopback() && port::vnic_calls() == nullptr),
        copies_(settings.forward.gpus) {}

  /// Host memory that the pools will take: for Eal::start, which comes before open().
  [[nodiscard]] Bytes host_memory() const;
  /// Opens, sets up and starts all ports.
  [[nodiscard]] Result<void> open();
  /// Lets GPUs copy for software NICs, once all else that is to run on them is prepared: packets in their memory move
  /// from here on.
  [[nodiscard]] Result<void> start_copies() { return copies_.start(); }
  void stop();  ///< stops the devices; they close when this is destroyed

  /// The ports by their index in the layout; of a loopback the near one, then the far one if it is another.
  [[nodiscard]] const std::vector<port::Port>& ports() const { return ports_; }
  /// Returns the far port of a loopback.
  [[nodiscard]] const port::Port& far() const { return ports_.back(); }
  /// Each once.
  [[nodiscard]] const std::vector<memory::PortPools>& pools() const { return pools_; }
  /// Where frames that the program sends itself by that port come from.
  [[nodiscard]] rte_mempool& sending_pool(std::size_t port) const { return *pools_of(port).queues().front().payload; }
  /// Those that are forwarded on.
  [[nodiscard]] std::vector<ForwardPort> near() const;
  /// Frames of one queue pair that the far side keeps on their way: half of a ring, so that none ever overflows, and of
  /// frames in several segments no more than fill three quarters of its descriptors.
  [[nodiscard]] std::uint32_t window() const;
  /// How sent buffers come back, by the roles of the layout. Complete after open().
  [[nodiscard]] const memory::Recycling& recycling() const { return recycling_; }
  /// Returns the bytes of GPU memory that the packet buffers take.
  [[nodiscard]] Bytes gpu_memory() const;

 private:
  [[nodiscard]] std::vector<std::string> specs() const;
  [[nodiscard]] Result<void> open_rings();
  [[nodiscard]] Result<void> configure(std::uint16_t index);
  /// Makes the pools of port `index`, or of all ports if they share them. All ports must be configured.
  [[nodiscard]] Result<void> make_pools(std::uint16_t index);
  [[nodiscard]] Result<void> start();
  [[nodiscard]] const port::PortSettings& port_settings(std::size_t port) const { return settings_.port(port); }
  [[nodiscard]] const memory::PortPools& pools_of(std::size_t port) const { return pools_[one_pool_ ? 0 : port]; }
  [[nodiscard]] bool is_far(std::size_t port) const { return settings_.forward.loopback && port == 1; }
  /// Whose packets a pool is for.
  enum class Side : std::uint8_t { near, far };
  [[nodiscard]] std::uint32_t bursts_hold(std::uint32_t queues) const;
  [[nodiscard]] std::uint32_t buffers(Side side, const port::PortSettings& port,
                                      const memory::PoolSettings& pool) const;
  [[nodiscard]] memory::PortPoolsPlan pools_plan(Side side, const std::string& name, const port::PortSettings& port,
                                                 const memory::PoolSettings& pool, int node) const;
  [[nodiscard]] memory::PoolSettings far_pool() const;

  const datapath::DatapathSettings settings_;
  const datapath::ForwardLayout& layout_;
  FarTraffic far_traffic_;
  bool one_pool_ = false;  ///< all ports receive into the same pools, for their packets leave by any of them
  bool hands_over_;        ///< a loopback's ports are rings, which pass the sender's own buffers on
  std::vector<memory::PortPools> pools_;
  std::vector<port::Port> ports_;
  NicCopies copies_;
  memory::Recycling recycling_;
};

}  // namespace warpline::forward
