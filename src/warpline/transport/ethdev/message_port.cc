// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/ethdev/message_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include "warpline/port/kept_buffers.h"
#include "warpline/port/station_address.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::transport {
namespace {

constexpr std::uint32_t kHandover = 2048;         ///< frames that wait for another worker
constexpr std::uint32_t kPayloadMbufBytes = 512;  ///< with its private area and the pool's bookkeeping, rounded up

/// Frames that a queue pair has in hand beside those in its rings.
constexpr std::uint32_t kInHand = 4 * MessageQueue::kBurst;

std::uint32_t buffers(const port::PortSettings& port, const MessagePortConfig& config) {
  if (config.pool.size != 0) return config.pool.size;
  const std::uint32_t handover = config.workers > 1 ? kHandover : 0;
  return memory::pool_size({.rx_descriptors = std::uint32_t{port.rx_ring} * config.workers,
                            .tx_descriptors = std::uint32_t{port.tx_ring} * config.workers,
                            .in_flight = (kInHand + handover) * config.workers,
                            .lcores = config.workers + 1U,
                            .cache = config.pool.cache});
}

/// Each is in a transmit ring, on its way through a peer of the same process, or free.
std::uint32_t payloads(const port::PortSettings& port, const MessagePortConfig& config) {
  return std::bit_ceil(4U * port.tx_ring + config.pool.cache * 2) - 1;
}

std::uint32_t room(const port::PortSettings& port, const MessagePortConfig& config) {
  return config.pool.data_room != 0 ? config.pool.data_room : memory::data_room(port.mtu);
}

std::vector<std::string> supported(std::uint64_t capability,
                                   std::vector<std::pair<std::uint64_t, std::string>> wanted) {
  std::vector<std::string> names;
  for (auto& [bit, name] : wanted) {
    if ((capability & bit) != 0) names.push_back(std::move(name));
  }
  return names;
}

void add_new(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Whether the driver says of each packet that it has been read, when asked. One that says so for several at once would
/// keep the last payloads, which their applications wait for, until others follow.
bool tells_at_once(std::uint16_t port) {
  rte_eth_txq_info queue{};
  return rte_eth_tx_queue_info_get(port, 0, &queue) == 0 && queue.conf.tx_rs_thresh == 1 &&
         rte_eth_tx_done_cleanup(port, 0, 0) != -ENOTSUP;
}

/// Newer net_memif (not that of 22.11, that of 24.11) marks in its ring that a frame goes on in the next slot, and does
/// not take the mark back when the slot holds a whole frame: its peer then reads beyond what is there, and may crash.
bool confuses_pieces(const std::string& driver) {
  return driver == "net_memif" && RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0);
}

}  // namespace

Bytes MessagePort::memory(const port::PortSettings& port, const MessagePortConfig& config) {
  constexpr std::uint64_t kRingsAndQueues = 16U << 20;
  const port::PortSettings longest = with_longest_rings(port);
  return Bytes{kRingsAndQueues + memory::pool_bytes(buffers(longest, config), room(port, config)).value +
               std::uint64_t{config.workers} * payloads(longest, config) * kPayloadMbufBytes};
}

Result<std::unique_ptr<MessagePort>> MessagePort::open(const port::PortSettings& wanted,
                                                       const MessagePortConfig& config,
                                                       std::optional<std::uint16_t> adopted) {
  std::unique_ptr<MessagePort> made(new MessagePort());
  WARPLINE_TRY(port::Port port, adopted ? port::Port::adopt(*adopted) : port::Port::open(wanted.spec));
  made->port_.emplace(std::move(port));
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(made->port_->id(), &info) != 0) {
    return environment_error(fmt::format("port {}: the device does not answer", made->port_->name()), "it is gone",
                             "run `warpline doctor`");
  }
  port::PortSettings setup = wanted;
  add_new(setup.tx_offloads, supported(info.tx_offload_capa, {{RTE_ETH_TX_OFFLOAD_MULTI_SEGS, "multi_segs"},
                                                              {RTE_ETH_TX_OFFLOAD_UDP_CKSUM, "udp_cksum"}}));
  add_new(setup.rx_offloads, supported(info.rx_offload_capa, {{RTE_ETH_RX_OFFLOAD_IPV4_CKSUM, "ipv4_cksum"},
                                                              {RTE_ETH_RX_OFFLOAD_UDP_CKSUM, "udp_cksum"}}));
  // The last payload of a message must not wait for others to be sent before the device says that it has left.
  // Where a driver has no word on it, such as net_vnic, that costs as much as copying Ethernet's frames.
  const bool worth_it = info.default_txconf.tx_rs_thresh != 0 || wanted.mtu > RTE_ETHER_MTU;
  if (worth_it && !setup.tx_rs_thresh) setup.tx_rs_thresh = 1;
  WARPLINE_CHECK(made->port_->configure(setup, {.rx = config.workers, .tx = config.workers}));
  made->link_ = std::make_unique<MessageLink>(
      port::station_address(*made->port_), wanted.mtu, wanted.addresses, config.gateway, config.vlan,
      std::uint64_t{config.workers} * config.max_sessions, made->port_->watches());
  WARPLINE_CHECK(made->make_pools(made->port_->settings_in_force(), config));
  // The offloads in force are known from here on.
  WARPLINE_CHECK(made->port_->attach(made->pool_->get()));
  WARPLINE_CHECK(made->port_->start());
  WARPLINE_CHECK(made->make_queues(config));
  made->announcer_ = std::make_unique<port::Announcer>(*made->port_, made->port_->mac(), made->addresses(),
                                                       *made->pool_->get(), config.vlan.value_or(0));
  made->announcer_->begin(Nanos{0});
  made->queue(0).set_announcer(made->announcer_.get());
  return made;
}

std::vector<std::string> MessagePort::tend(Nanos now) {
  constexpr std::int64_t kAgeEvery = 1'000'000'000;
  if (now >= age_at_) {
    age_at_ = {now.value + kAgeEvery};
    link_->neighbours.age(now);
  }
  // The announcer's time begins with the first call: open() knows no clock.
  if (!tended_first_) tended_first_ = now;
  return announcer_->tend({now.value - tended_first_->value});
}

Result<void> MessagePort::make_pools(const port::PortSettings& port, const MessagePortConfig& config) {
  static std::atomic<unsigned> made{0};
  const runtime::SetupStep step(fmt::format("allocating the buffers of port {}", port_->name()));
  const unsigned number = made++;
  const memory::PoolShape shape{.name = fmt::format("message{}", number),
                                .size = buffers(port, config),
                                .cache = config.pool.cache,
                                .data_room = room(port, config),
                                .node = port_->node()};
  WARPLINE_TRY(memory::PacketPool pool, config.pool.memory == memory::MemoryKind::pinned
                                            ? memory::PacketPool::make_pinned(shape, config.gpu, config.gpus.pin)
                                            : memory::PacketPool::make(shape));
  pool_.emplace(std::move(pool));
  const int node = port_->node() == runtime::kAnyNode ? SOCKET_ID_ANY : port_->node();
  for (std::uint16_t i = 0; i < config.workers; ++i) {
    const std::string name = fmt::format("payload{}_{}", number, i);
    const std::uint32_t cache = std::min(config.pool.cache, RTE_MEMPOOL_CACHE_MAX_SIZE + 0U);
    payloads_.push_back(
        rte_pktmbuf_pool_create(name.c_str(), payloads(port, config), cache, MessageQueue::private_bytes(), 0, node));
    if (payloads_.back() != nullptr) continue;
    payloads_.pop_back();
    return environment_error(fmt::format("pool {} of {} mbufs", name, payloads(port, config)), rte_strerror(rte_errno),
                             "reserve more hugepages, or use fewer workers");
  }
  return {};
}

Result<void> MessagePort::make_queues(const MessagePortConfig& config) {
  for (std::uint16_t i = 0; i < config.workers && config.workers > 1; ++i) {
    rte_ring* const ring =
        rte_ring_create(fmt::format("handover{}_{}", port_->id(), i).c_str(), kHandover, SOCKET_ID_ANY, RING_F_SC_DEQ);
    if (ring == nullptr) {
      return environment_error(fmt::format("cannot make a ring of {} frames", kHandover), rte_strerror(rte_errno),
                               "reserve more hugepages, or use fewer workers");
    }
    handover_.push_back(ring);
  }
  const port::PortSetup& setup = port_->setup();
  // Most vdevs read memory as the CPU does, and before the call returns. What a NIC may read, and net_vnic, and those
  // that have another process read where it lies, is up to MessageQueue::allow().
  const bool lends = port_->driver() == "net_virtio_user" || port::keeps_buffers(*port_);
  const bool software = port_->name().find(':') == std::string::npos && port_->driver() != "net_vnic" && !lends;
  const bool gathers = has(setup.tx_offloads, "multi_segs") && (software || tells_at_once(port_->id())) &&
                       !confuses_pieces(port_->driver());
  UdpChecksum checksum = has(setup.tx_offloads, "udp_cksum") ? UdpChecksum::device : UdpChecksum::software;
  if (!config.udp_checksum) checksum = UdpChecksum::none;
  rte_eth_rss_conf rss{};
  const bool spreads = config.workers > 1 && rte_eth_dev_rss_hash_conf_get(port_->id(), &rss) == 0 && rss.rss_hf != 0;
  for (std::uint16_t i = 0; i < config.workers; ++i) {
    WARPLINE_TRY(std::unique_ptr<MessageQueue> queue, MessageQueue::make({.place = {port_->id(), i},
                                                                          .worker = i,
                                                                          .steering = {.first_port = config.udp_port,
                                                                                       .workers = config.workers,
                                                                                       .own_ports = config.own_ports,
                                                                                       .by_device = spreads},
                                                                          .pool = pool_->get(),
                                                                          .payloads = gathers ? payloads_[i] : nullptr,
                                                                          .handover = handover_,
                                                                          .max_sessions = config.max_sessions,
                                                                          .datagram_bytes = config.datagram_bytes,
                                                                          .checksum = checksum,
                                                                          .any_memory = software},
                                                                         *link_));
    queues_.push_back(std::move(queue));
  }
  return {};
}

Result<std::span<std::uint8_t>> MessagePort::allocate(std::uint64_t bytes) {
  void* const memory = rte_malloc_socket("message", bytes, RTE_CACHE_LINE_SIZE, SOCKET_ID_ANY);
  if (memory == nullptr) {
    return environment_error(fmt::format("cannot take {} bytes for messages", bytes), "EAL has none left",
                             "reserve more hugepages, or use a smaller --length");
  }
  allocated_.push_back(memory);
  const std::span<std::uint8_t> span(static_cast<std::uint8_t*>(memory), bytes);
  if (rte_eal_iova_mode() == RTE_IOVA_VA) {
    for (const auto& queue : queues_) queue->allow(span);
  }
  return span;
}

void MessagePort::close() {
  if (port_) driver_keeps_ = port::keeps_buffers(*port_);
  port_.reset();
  for (const auto& queue : queues_) queue->close();
  // What waits for another worker is nobody's now.
  for (rte_ring* const ring : handover_) {
    void* frame = nullptr;
    while (rte_ring_dequeue(ring, &frame) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  }
}

MessagePort::~MessagePort() {
  close();
  queues_.clear();
  for (rte_ring* const ring : handover_) rte_ring_free(ring);
  for (rte_mempool* const pool : payloads_) rte_mempool_free(pool);
  for (void* const memory : allocated_) rte_free(memory);
}

std::uint32_t MessagePort::leaked() const {
  if (driver_keeps_) return 0;
  std::uint32_t buffers = pool_ ? pool_->in_use() : 0;
  for (const rte_mempool* const pool : payloads_) buffers += rte_mempool_in_use_count(pool);
  return buffers;
}

}  // namespace warpline::transport
