// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rte_ethdev.h>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/packet/announcement.h"
#include "warpline/port/port_settings.h"

namespace warpline::port {

/// What the program wants of a port beyond what its user configured.
struct PortQueues {
  std::uint16_t rx = 1;   ///< receive queues
  std::uint16_t tx = 1;   ///< transmit queues
  bool one_pool = false;  ///< all that is sent on a queue comes from one pool, unshared: fast free is safe
};

/// Where a receive queue's packets are placed.
struct RxPools {
  rte_mempool* payload = nullptr;  ///< whole frames, or what follows the first bytes
  rte_mempool* header = nullptr;   ///< with a split: the first bytes
  std::uint16_t split = 0;         ///< how many those are; 0: no split
};

/// What the device made of it.
struct PortSetup {
  std::uint16_t rx_queues = 0;           ///< that were set up
  std::uint16_t tx_queues = 0;           ///< that were set up
  std::uint16_t rx_ring = 0;             ///< descriptors, adjusted to the device's limits
  std::uint16_t tx_ring = 0;             ///< descriptors, adjusted to the device's limits
  std::uint16_t mtu = 0;                 ///< bytes of layer-3 packet
  std::vector<std::string> rx_offloads;  ///< in force
  std::vector<std::string> tx_offloads;  ///< in force
  std::string device_access;             ///< after map(): how the device reaches that memory, "through nvidia-peermem"
  std::vector<std::string> refused;      ///< each one line: asked for, and not to be had from this device
  std::string rings;                     ///< one line when the rings are not of the sizes asked for; else empty
};

/// A snapshot of the device's own counters since the last reset. Bytes are without FCS.
struct PortCounters {
  std::uint64_t rx_packets = 0;         ///< handed to the program
  std::uint64_t rx_bytes = 0;           ///< of these
  std::uint64_t tx_packets = 0;         ///< sent
  std::uint64_t tx_bytes = 0;           ///< of these
  std::uint64_t rx_missed = 0;          ///< the receive ring was full
  std::uint64_t rx_errors = 0;          ///< refused by the device, or cut by its driver
  std::uint64_t rx_no_mbuf = 0;         ///< the pool was empty
  std::uint64_t tx_errors = 0;          ///< failed to be sent
  std::uint64_t address_conflicts = 0;  ///< frames by which another station claimed an address of the port
};

/// The same without the FCS, which the counters of some devices include.
[[nodiscard]] PortCounters without_fcs(std::string_view driver, PortCounters counters);

/// A device's link, as it was when asked.
struct LinkState {
  bool up = false;               ///< also where the driver cannot tell
  std::uint32_t mbit_per_s = 0;  ///< 0: unknown
};

/// Owns the set-up of an ethdev; the data path uses `id()` with DPDK's own calls. Used by the control thread only:
/// open, configure, attach the pool, start, and, destroyed, stop and close.
class Port {
 public:
  /// Probes `spec`: a PCI address (given to Eal::start too) or a vdev string.
  [[nodiscard]] static Result<Port> open(const std::string& spec);
  /// Takes over an ethdev that already exists, such as one of a ring pair; closes it when destroyed.
  [[nodiscard]] static Result<Port> adopt(std::uint16_t id);

  Port(Port&& other) noexcept;  ///< owns what the other did, which owns nothing then
  Port& operator=(Port&& other) noexcept;
  ~Port();

  /// Works out queues, rings, offloads, RSS and MTU, for the pool's size; more queues than the device has is a usage
  /// error.
  [[nodiscard]] Result<void> configure(const PortSettings& settings, const PortQueues& queues);
  /// Lets the device read and write memory that EAL knows (rte_extmem_register) but that is not its own, such as a
  /// GPU's, until the port is closed. After configure(). A device that cannot is an environment error.
  [[nodiscard]] Result<void> map(std::span<std::byte> memory);
  /// Sets device and queues up; received packets are placed in buffers of `pools[0]`, or of one for each receive queue.
  /// Asks for a PortSettings::tx_free_thresh where the settings have none: a device that refuses it has its own.
  /// Between configure() and attach().
  void wish_tx_free_thresh(std::uint16_t descriptors) { tx_free_wish_ = descriptors; }
  /// Once, after configure(). A device that cannot split frames so is a usage error.
  [[nodiscard]] Result<void> attach(std::span<const RxPools> pools);
  /// The same with one pool for all queues and without a split.
  [[nodiscard]] Result<void> attach(rte_mempool* pool) { return attach({{RxPools{.payload = pool}}}); }
  /// Starts the device, promiscuous as configured.
  [[nodiscard]] Result<void> start();
  void stop();  ///< stops the device; it stays configured until it is destroyed

  [[nodiscard]] std::uint16_t id() const { return id_; }  ///< of the ethdev, for DPDK's calls
  /// As DPDK has it: the PCI address, or the vdev's name.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& driver() const { return driver_; }  ///< DPDK's name of it, such as "net_ice"
  /// NUMA node, or kAnyNode.
  [[nodiscard]] int node() const { return node_; }
  [[nodiscard]] MacAddress mac() const;                              ///< its own address, asked of the device
  [[nodiscard]] bool writes_files() const { return writes_files_; }  ///< what is sent is on no link
  /// Valid after configure().
  [[nodiscard]] const PortSetup& setup() const { return setup_; }
  /// What was configured, with rings as long as the device may make them. Valid after configure().
  [[nodiscard]] PortSettings settings_in_force() const;

  /// For the responders of the port's addresses, in the order of PortSettings::addresses. Valid after configure().
  [[nodiscard]] std::span<packet::AddressWatch> watches() const { return {watches_.get(), settings_.addresses.size()}; }

  [[nodiscard]] PortCounters counters() const;  ///< all zero if the device does not answer
  /// The driver's own counters (xstats) by their names; empty if it has none or does not answer.
  [[nodiscard]] std::map<std::string, std::uint64_t> extended_counters() const;
  [[nodiscard]] LinkState link() const;  ///< asked without waiting; up where the driver cannot tell

 private:
  explicit Port(std::uint16_t id);
  void close();
  [[nodiscard]] Result<void> spread(const rte_eth_dev_info& info, rte_eth_conf& device);
  [[nodiscard]] Result<void> set_mtu();
  void join_groups(bool promiscuous);
  [[nodiscard]] Result<void> choose_offloads(const rte_eth_dev_info& info, std::span<const RxPools> pools);
  void unmap();
  [[nodiscard]] Result<void> drop_cut_frames();
  void end_dropping();

  /// Frames of one receive queue that the driver cut. The queue's lcore writes.
  struct alignas(64) CutFrames {
    std::uint32_t length = 0;  ///< of frames that are cut, or as long as those that are
    Counter packets;
    Counter bytes;
    const rte_eth_rxtx_callback* callback = nullptr;
  };
  static std::uint16_t drop_cut(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                std::uint16_t most, void* frames);

  static constexpr std::uint16_t kNone = UINT16_MAX;

  std::uint16_t id_ = kNone;
  std::string name_;
  std::string driver_;
  rte_device* device_ = nullptr;
  int node_ = -1;
  bool started_ = false;
  bool writes_files_ = false;
  PortSettings settings_;
  std::optional<std::uint16_t> tx_free_wish_;  ///< where the settings say nothing
  PortQueues queues_;
  PortSetup setup_;
  std::uint32_t pool_needed_ = 0;            ///< descriptors of the receive queues of a pool that has fewer buffers
  std::vector<std::string> unused_outputs_;  ///< files that the driver made and that hold nothing until the start
  std::vector<std::span<std::byte>> mapped_;
  rte_eth_conf device_config_{};
  std::unique_ptr<packet::AddressWatch[]> watches_;  ///< by address
  std::unique_ptr<CutFrames[]> cut_;                 ///< by receive queue; null: the driver cuts none
};

}  // namespace warpline::port
