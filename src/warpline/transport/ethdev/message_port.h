// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/memory/gpu_memory.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/announce/announce.h"
#include "warpline/port/port.h"
#include "warpline/transport/ethdev/message_link.h"
#include "warpline/transport/ethdev/message_queue.h"

namespace warpline::transport {

/// What a MessagePort is opened with, beyond its port's settings.
struct MessagePortConfig {
  /// Queue pairs, each with a thread and an endpoint of its own. Where they share a UDP port the endpoint of worker i
  /// has the number i, EndpointConfig::endpoint: by it packets of its sessions find it.
  std::uint16_t workers = 1;
  std::uint16_t udp_port = 0;          ///< of all workers, or of the first
  bool own_ports = false;              ///< worker i has udp_port + i: what peers answer then finds it
  std::optional<IpAddress> gateway{};  ///< next hop to peers that are not on the port's link
  std::optional<std::uint16_t>
      vlan{};                         ///< the tag's control word; what is sent and taken has that tag, or none if unset
  std::uint32_t max_sessions = 1024;  ///< of each endpoint
  std::uint32_t datagram_bytes = 1472;                       ///< the most UDP payload that is sent or received
  bool udp_checksum = true;                                  ///< over IPv4; IPv6 always has one
  memory::PoolSettings pool{};                               ///< memory: host, or pinned for `gpu`
  std::uint16_t gpu = 0;                                     ///< CUDA ordinal
  memory::GpuMemory gpus = memory::GpuMemory::of_machine();  ///< how memory is got from the GPU, and pinned for it
};

/// A port that carries messages: the ethdev, its pools, and one MessageQueue a worker. Set-up and clean-up by the
/// control thread; the queues belong to their workers in between.
class MessagePort {
 public:
  /// Host memory that open() takes: for Eal::start.
  [[nodiscard]] static Bytes memory(const port::PortSettings& port, const MessagePortConfig& config);
  /// Opens `port.spec`, or takes over `adopted`, sets it up and starts it.
  [[nodiscard]] static Result<std::unique_ptr<MessagePort>> open(const port::PortSettings& port,
                                                                 const MessagePortConfig& config,
                                                                 std::optional<std::uint16_t> adopted = {});
  ~MessagePort();

  /// The queue of one worker, below config.workers; the port owns it.
  [[nodiscard]] MessageQueue& queue(std::uint16_t worker) { return *queues_[worker]; }
  /// Memory that messages may be sent from without a copy if the device sends frames of several pieces, and, being
  /// hardware or net_vnic, says of each when it has left (PortSettings::tx_rs_thresh 1, as unless told otherwise, of
  /// drivers that can be asked). Lives as long as the port. Before the workers run.
  [[nodiscard]] Result<std::span<std::uint8_t>> allocate(std::uint64_t bytes);
  /// At least once per second, by one thread while the workers run, with the time of any clock: forgets and asks again
  /// about neighbours, and has worker 0 announce and defend the port's addresses, which open() has announced first.
  /// Returns a line for each address that another station has been found to claim.
  [[nodiscard]] std::vector<std::string> tend(Nanos now);
  [[nodiscard]] const port::Port& port() const { return *port_; }  ///< of DPDK, with its counters and settings
  /// Its own, which ARP, ND and echo are answered for.
  [[nodiscard]] const std::vector<InterfaceAddress>& addresses() const { return link_->self.addresses; }
  /// What is received is placed in, and heads of what is sent come from.
  [[nodiscard]] rte_mempool* pool() const { return pool_->get(); }
  /// Stops and closes the device. After the workers have ended.
  void close();
  /// Buffers that are not back in their pools; 0 after close() unless somebody but the driver lost them.
  [[nodiscard]] std::uint32_t leaked() const;

 private:
  MessagePort() = default;
  Result<void> make_pools(const port::PortSettings& port, const MessagePortConfig& config);
  Result<void> make_queues(const MessagePortConfig& config);

  std::unique_ptr<MessageLink> link_;
  std::optional<memory::PacketPool> pool_;
  std::vector<rte_mempool*> payloads_;
  std::vector<rte_ring*> handover_;
  std::vector<void*> allocated_;
  std::vector<std::unique_ptr<MessageQueue>> queues_;
  std::optional<port::Port> port_;
  std::unique_ptr<port::Announcer> announcer_;
  std::optional<Nanos> tended_first_;
  Nanos age_at_{0};
  bool driver_keeps_ = false;  ///< buffers, for good
};

}  // namespace warpline::transport
