// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

// For tests and benchmarks that drive the port through ethdev.
namespace warpline::vnic {

/// Once a process: one lcore, no hugepages, no devices but those that a test makes.
inline void start_eal() {
  static const bool started = [] {
    static std::string words[] = {"vnic",        "--no-huge", "-m", "512",         "--no-pci",      "--no-telemetry",
                                  "--no-shconf", "-l",        "0",  "--log-level", "pmd.net.vnic:4"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) >= 0;
  }();
  if (!started) throw std::runtime_error("EAL does not start");
}

/// A pool that gives its mbufs back when it goes.
class Pool {
 public:
  explicit Pool(unsigned mbufs = 2048, std::uint16_t data_room = RTE_MBUF_DEFAULT_BUF_SIZE, unsigned cache = 0) {
    start_eal();
    static unsigned made = 0;
    const std::string name = "pool" + std::to_string(made++);
    pool_ = rte_pktmbuf_pool_create(name.c_str(), mbufs, cache, 0, data_room, SOCKET_ID_ANY);
    if (pool_ == nullptr) throw std::runtime_error("no memory for a pool");
  }
  ~Pool() { rte_mempool_free(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] unsigned free() const { return rte_mempool_avail_count(pool_); }
  [[nodiscard]] unsigned size() const { return pool_->size; }
  /// An mbuf that holds `bytes`.
  [[nodiscard]] rte_mbuf* make(std::span<const std::uint8_t> bytes) const {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool_);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    return mbuf;
  }

 private:
  rte_mempool* pool_;
};

struct PortSetup {
  std::uint16_t queues = 1;
  std::uint16_t ring = 256;
  std::uint64_t rx_offloads = 0;
  std::uint64_t tx_offloads = 0;
  std::uint64_t rss_fields = 0;
  std::uint16_t rx_free_thresh = 0;
  std::uint16_t tx_free_thresh = 0;
  std::uint16_t tx_rs_thresh = 0;
  std::uint16_t mtu = 1500;
  bool link_interrupts = false;
  std::vector<rte_eth_rxseg_split> split{};
};

/// A port of any vdev driver, gone with its object.
class Port {
 public:
  explicit Port(const std::string& name, const std::string& args = "") : name_(name) {
    start_eal();
    if (rte_vdev_init(name.c_str(), args.c_str()) != 0) throw std::runtime_error("no port " + name);
    rte_eth_dev_get_port_by_name(name.c_str(), &id);
  }
  ~Port() { close(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  void close() {
    if (!name_.empty()) rte_vdev_uninit(name_.c_str());
    name_.clear();
  }

  /// The first error of ethdev, or 0.
  int configure(rte_mempool* pool, const PortSetup& setup = {}) {
    rte_eth_conf conf{};
    conf.rxmode.offloads = setup.rx_offloads;
    conf.rxmode.mtu = setup.mtu;
    conf.txmode.offloads = setup.tx_offloads;
    conf.intr_conf.lsc = setup.link_interrupts ? 1 : 0;
    if (setup.rss_fields != 0) {
      conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
      conf.rx_adv_conf.rss_conf.rss_hf = setup.rss_fields;
    }
    int error = rte_eth_dev_configure(id, setup.queues, setup.queues, &conf);
    if (error != 0) return error;
    rte_eth_dev_info info;
    error = rte_eth_dev_info_get(id, &info);
    if (error != 0) return error;
    for (std::uint16_t queue = 0; queue < setup.queues; ++queue) {
      rte_eth_rxconf rx = info.default_rxconf;
      rx.offloads = setup.rx_offloads;
      rx.rx_free_thresh = setup.rx_free_thresh;
      std::vector<rte_eth_rxseg> segments(setup.split.size());
      for (std::size_t i = 0; i < segments.size(); ++i) segments[i].split = setup.split[i];
      rx.rx_seg = segments.data();
      rx.rx_nseg = static_cast<std::uint16_t>(segments.size());
      error = rte_eth_rx_queue_setup(id, queue, setup.ring, 0, &rx, segments.empty() ? pool : nullptr);
      if (error != 0) return error;
      rte_eth_txconf tx = info.default_txconf;
      tx.offloads = setup.tx_offloads;
      tx.tx_free_thresh = setup.tx_free_thresh;
      tx.tx_rs_thresh = setup.tx_rs_thresh;
      error = rte_eth_tx_queue_setup(id, queue, setup.ring, 0, &tx);
      if (error != 0) return error;
    }
    return 0;
  }
  int start(rte_mempool* pool, const PortSetup& setup = {}) {
    if (const int error = configure(pool, setup); error != 0) return error;
    if (const int error = rte_eth_dev_start(id); error != 0) return error;
    return rte_eth_promiscuous_enable(id);
  }

  std::uint16_t send(rte_mbuf* mbuf, std::uint16_t queue = 0) { return rte_eth_tx_burst(id, queue, &mbuf, 1); }
  /// What comes within some polls. One that finds nothing yields: the driver's thread may have the same core.
  std::vector<rte_mbuf*> receive(std::uint16_t queue = 0, unsigned polls = 4) {
    std::vector<rte_mbuf*> all;
    while (polls-- > 0) {
      rte_mbuf* mbufs[64];
      const std::uint16_t count = rte_eth_rx_burst(id, queue, mbufs, 64);
      all.insert(all.end(), mbufs, mbufs + count);
      if (count == 0) std::this_thread::yield();
    }
    return all;
  }

  /// The driver's own counters by name.
  [[nodiscard]] std::map<std::string, std::uint64_t> counts() const {
    const int count = rte_eth_xstats_get_names(id, nullptr, 0);
    std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
    std::vector<rte_eth_xstat> values(static_cast<std::size_t>(count));
    rte_eth_xstats_get_names(id, names.data(), static_cast<unsigned>(count));
    rte_eth_xstats_get(id, values.data(), static_cast<unsigned>(count));
    std::map<std::string, std::uint64_t> all;
    for (const rte_eth_xstat& value : values) all[names[value.id].name] = value.value;
    return all;
  }

  std::uint16_t id = 0;

 private:
  std::string name_;
};

}  // namespace warpline::vnic
