// SPDX-License-Identifier: Apache-2.0
#include "port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include <rte_bus_vdev.h>
#include <rte_log.h>

namespace warpline::vnic {
namespace {

/// Calls of a send before a test gives up.
constexpr int kPatience = 1'000'000;

std::string fresh_name() {
  static int serial = 0;
  return "test_" + std::to_string(serial++);
}

}  // namespace

Pool::Pool(unsigned mbufs, std::uint16_t room, unsigned cache)
    : pool_(rte_pktmbuf_pool_create(fresh_name().c_str(), mbufs, cache, 0,
                                    static_cast<std::uint16_t>(room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY)) {
  EXPECT_NE(pool_, nullptr) << rte_strerror(rte_errno);
}

Pool::Pool(unsigned mbufs, void* memory, std::size_t length, std::uint16_t element) : pool_(nullptr) {
  rte_pktmbuf_extmem extmem{};
  extmem.buf_ptr = memory;
  extmem.buf_iova = reinterpret_cast<std::uintptr_t>(memory);
  extmem.buf_len = length;
  extmem.elt_size = element;
  pool_ = rte_pktmbuf_pool_create_extbuf(fresh_name().c_str(), mbufs, 0, 0, element, SOCKET_ID_ANY, &extmem, 1);
  EXPECT_NE(pool_, nullptr) << rte_strerror(rte_errno);
}

Pool::~Pool() {
  EXPECT_EQ(in_use(), 0U) << "mbufs never came back";
  rte_mempool_free(pool_);
}

rte_mbuf* Pool::chain(const packet::FrameBytes& bytes, const std::vector<std::uint32_t>& lengths) const {
  rte_mbuf* head = nullptr;
  std::size_t at = 0;
  for (std::size_t i = 0; i <= lengths.size(); ++i) {
    const std::size_t rest = bytes.size() - at;
    const std::size_t length = i == lengths.size() ? rest : std::min<std::size_t>(lengths[i], rest);
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool_);
    char* const to = mbuf == nullptr ? nullptr : rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(length));
    if (to == nullptr) {
      rte_pktmbuf_free(mbuf);
      rte_pktmbuf_free(head);
      throw std::runtime_error("no mbuf with room for " + std::to_string(length));
    }
    std::memcpy(to, bytes.data() + at, length);
    at += length;
    if (head == nullptr) {
      head = mbuf;
    } else {
      EXPECT_EQ(rte_pktmbuf_chain(head, mbuf), 0);
    }
  }
  return head;
}

packet::FrameBytes bytes_of(const rte_mbuf* mbuf) {
  packet::FrameBytes bytes;
  bytes.reserve(mbuf->pkt_len);
  unsigned segments = 0;
  const std::uint32_t length = mbuf->pkt_len;
  const unsigned claimed = mbuf->nb_segs;
  for (; mbuf != nullptr; mbuf = mbuf->next, ++segments) {
    const auto* const data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    bytes.insert(bytes.end(), data, data + mbuf->data_len);
  }
  EXPECT_EQ(bytes.size(), length);
  EXPECT_EQ(segments, claimed);
  return bytes;
}

packet::FrameBytes taken(rte_mbuf* mbuf) {
  packet::FrameBytes bytes = bytes_of(mbuf);
  rte_pktmbuf_free(mbuf);
  return bytes;
}

Port::Port(std::string name, const std::string& args) : name_(std::move(name)) {
  probed_ = rte_vdev_init(name_.c_str(), args.c_str());
  if (probed_ == 0) {
    EXPECT_EQ(rte_eth_dev_get_port_by_name(name_.c_str(), &id_), 0);
  }
}

int Port::configure(const PortSetup& setup) {
  int status = rte_eth_dev_configure(id_, setup.rx_queues, setup.tx_queues, &setup.conf);
  if (status != 0) return status;
  std::vector<rte_eth_rxseg> segments(setup.split.size());
  for (std::size_t i = 0; i < segments.size(); ++i) segments[i].split = setup.split[i];
  rte_eth_rxconf rx = setup.rx;
  rx.offloads |= setup.conf.rxmode.offloads;
  rx.rx_seg = segments.data();
  rx.rx_nseg = static_cast<std::uint16_t>(segments.size());
  rte_eth_txconf tx = setup.tx;
  tx.offloads |= setup.conf.txmode.offloads;
  for (std::uint16_t i = 0; i < setup.rx_queues && status == 0; ++i) {
    status = rte_eth_rx_queue_setup(id_, i, setup.rx_ring, 0, &rx, segments.empty() ? setup.pool : nullptr);
  }
  for (std::uint16_t i = 0; i < setup.tx_queues && status == 0; ++i) {
    status = rte_eth_tx_queue_setup(id_, i, setup.tx_ring, 0, &tx);
  }
  if (status == 0 && setup.promiscuous) status = rte_eth_promiscuous_enable(id_);
  return status;
}

void Port::bring_up(const PortSetup& setup) {
  ASSERT_EQ(configure(setup), 0);
  ASSERT_EQ(rte_eth_dev_start(id_), 0);
}

void Port::close() {
  if (probed_ != 0) return;
  EXPECT_EQ(rte_vdev_uninit(name_.c_str()), 0);
  probed_ = -1;
}

std::uint16_t Port::send(rte_mbuf** mbufs, std::uint16_t count, std::uint16_t queue) const {
  std::uint16_t sent = 0;
  for (int calls = 0; sent < count && calls < kPatience; ++calls) {
    if (calls > 0) std::this_thread::yield();
    sent += rte_eth_tx_burst(id_, queue, mbufs + sent, static_cast<std::uint16_t>(count - sent));
  }
  return sent;
}

void Port::send(const Pool& pool, const packet::FrameBytes& frame, std::uint16_t queue) const {
  rte_mbuf* mbuf = pool.chain(frame);
  EXPECT_EQ(send(&mbuf, 1, queue), 1);
}

std::vector<rte_mbuf*> Port::receive(std::uint16_t queue, std::uint16_t most) const {
  std::vector<rte_mbuf*> mbufs(most);
  mbufs.resize(rte_eth_rx_burst(id_, queue, mbufs.data(), most));
  return mbufs;
}

rte_mbuf* Port::receive_one(std::uint16_t queue) const {
  rte_mbuf* mbuf = nullptr;
  return rte_eth_rx_burst(id_, queue, &mbuf, 1) == 1 ? mbuf : nullptr;
}

Frames Port::receive_all(std::uint16_t queue) const {
  Frames frames;
  for (;;) {
    const std::vector<rte_mbuf*> mbufs = receive(queue);
    if (mbufs.empty()) return frames;
    for (rte_mbuf* mbuf : mbufs) frames.push_back(taken(mbuf));
  }
}

std::uint64_t Port::xstat(const std::string& name) const {
  std::uint64_t id = 0;
  std::uint64_t value = 0;
  EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name.c_str(), &id), 0) << name;
  EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &id, &value, 1), 1) << name;
  return value;
}

rte_eth_stats Port::stats() const {
  rte_eth_stats stats{};
  EXPECT_EQ(rte_eth_stats_get(id_, &stats), 0);
  return stats;
}

unsigned Port::held(const Pool& pool) const {
  std::unordered_set<const rte_mbuf*> seen;
  const auto see = [&](const rte_mbuf* mbuf) {
    if (mbuf == nullptr || mbuf->pool != pool.get()) return;
    EXPECT_TRUE(seen.insert(mbuf).second) << name_ << ": an mbuf stands in a ring twice";
  };
  for (const RxQueue* queue : device().rx) {
    if (queue == nullptr) continue;
    std::uint16_t at = queue->next;
    for (std::uint32_t left = queue->refilled - queue->harvested; left > 0; --left) {
      EXPECT_NE(queue->software_ring[at], nullptr);
      see(queue->software_ring[at]);
      at = advance(at, queue->size);
    }
  }
  for (const TxQueue* queue : device().tx) {
    if (queue == nullptr) continue;
    std::uint16_t at = queue->reclaim_at;
    for (std::uint32_t left = queue->sent - queue->reclaimed; left > 0; --left) {
      see(queue->software_ring[at]);
      at = advance(at, queue->size);
    }
  }
  return static_cast<unsigned>(seen.size());
}

void expect_accounted(const Pool& pool, const std::vector<const Port*>& ports, unsigned elsewhere) {
  unsigned held = elsewhere;
  for (const Port* port : ports) held += port->held(pool);
  EXPECT_EQ(pool.in_use(), held);
}

QuietLog::QuietLog() : before_(rte_log_get_global_level()) { rte_log_set_global_level(RTE_LOG_EMERG); }
QuietLog::~QuietLog() { rte_log_set_global_level(before_); }

packet::FrameBytes numbered(std::uint32_t number, std::size_t length) {
  constexpr std::size_t kHeaders = 42;
  packet::FrameBytes payload = packet::counting(length - kHeaders, static_cast<std::uint8_t>(number));
  for (unsigned i = 0; i < 4; ++i) payload[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(payload)));
}

}  // namespace warpline::vnic
