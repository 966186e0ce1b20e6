// SPDX-License-Identifier: Apache-2.0
// Sequences of ethdev calls on three ports, in any order that ethdev lets through: no crash, no leak, every mbuf
// accounted for at the end.

#include <ethdev_driver.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "vnic/api/set_faults.h"
#include "vnic/engine/lazy_copies_testing.h"
#include "warpline/vnic/recycle_ops.h"

namespace warpline::vnic {
namespace {

constexpr unsigned kPorts = 3;
constexpr std::uint16_t kRoom = 512;
constexpr const char* kNames[kPorts] = {"net_vnic0", "net_vnic1", "net_vnic2"};
constexpr const char* kArgs[] = {
    "",
    "wire=net_vnic0",
    "wire=net_vnic1",
    "wire=net_vnic2,loss=0.3,seed=7",
    "wire=source,size=600,flows=3",
    "wire=sink",
    "wire=static,size=100",
    "duplicate=0.5,reorder=0.5,corrupt=0.3,truncate=0.5,queues=2",
    "wire=net_vnic1,rate=1gbit,queue_bytes=2Ki,ecn_bytes=100,delay=1us",
    "stall=0.5,rx_out=0.2,tx_full=0.5,flap_frames=3,buffer=32Ki",
    "engine=thread",
    "wire=net_vnic0,engine=thread,jitter=5us",
};
constexpr const char* kFaults[] = {"",
                                   "loss=1",
                                   "reorder=1,reorder_depth=64",
                                   "duplicate=1,corrupt=1,truncate=1",
                                   "rate=1mbit,delay=1ms",
                                   "stall=1",
                                   "tx_full=1",
                                   "flap_frames=1,flap_lost=1",
                                   "x=1"};

rte_mempool* pools[2];

/// What some ports copy with, a new one for each input.
std::unique_ptr<LazyCopies> copies;
bool copies_failed;

/// The input, read from its front; zeros behind its end.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  [[nodiscard]] bool empty() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *at_++;
  }
  std::uint16_t word() {
    const std::uint16_t high = byte();
    return static_cast<std::uint16_t>(high << 8 | byte());
  }
  unsigned below(unsigned bound) { return byte() % bound; }
  void fill(void* to, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) static_cast<std::uint8_t*>(to)[i] = byte();
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

struct Port {
  bool there = false;
  std::uint16_t id = 0;
  std::vector<rte_flow*> flows;
};
Port ports[kPorts];

[[nodiscard]] const rte_eth_dev_data& data_of(const Port& port) { return *rte_eth_devices[port.id].data; }

/// Whether ethdev's burst calls may be made: it leaves that to applications.
[[nodiscard]] bool running(const Port& port) { return port.there && data_of(port).dev_started != 0; }

void probe(unsigned which, Bytes& in) {
  Port& port = ports[which];
  if (port.there) return;
  if (rte_vdev_init(kNames[which], kArgs[in.below(std::size(kArgs))]) != 0) return;
  port.there = rte_eth_dev_get_port_by_name(kNames[which], &port.id) == 0;
}

void close(unsigned which) {
  Port& port = ports[which];
  if (!port.there) return;
  if (rte_vdev_uninit(kNames[which]) != 0) std::abort();
  port = {};
}

void change_copies(const Port& port, Bytes& in) {
  const rte_net_vnic_copy_engine engine = copies->engine();
  switch (in.below(8)) {
    case 0:
      copies->fail();
      copies_failed = true;
      break;
    case 1:
      copies->mend();
      break;
    case 2:
      copies->take_at_most(1 + in.below(4));
      break;
    default:
      if (port.there) rte_net_vnic_set_copy_engine(port.id, in.below(4) == 0 ? nullptr : &engine);
  }
}

constexpr std::uint64_t kRxOffloads[] = {0,
                                         RTE_ETH_RX_OFFLOAD_SCATTER,
                                         RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT,
                                         RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER,
                                         RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH,
                                         RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_SCATTER};
constexpr std::uint64_t kTxOffloads[] = {0, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE, RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
                                         RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
                                             RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS};

std::uint16_t ring_size(Bytes& in) {
  constexpr std::uint16_t kSizes[] = {64, 65, 128, 255, 512, 63, 0, 8192};
  return kSizes[in.below(std::size(kSizes))];
}

void setup_rx(const Port& port, std::uint16_t queue, Bytes& in) {
  rte_eth_rxconf conf{};
  conf.rx_free_thresh = in.byte();
  conf.rx_deferred_start = in.below(8) == 0 ? 1 : 0;
  conf.offloads = data_of(port).dev_conf.rxmode.offloads;
  rte_eth_rxseg segments[4]{};
  rte_mempool* pool = pools[in.below(2)];
  if ((conf.offloads & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0) {
    conf.rx_seg = segments;
    conf.rx_nseg = static_cast<std::uint16_t>(1 + in.below(4));
    for (unsigned i = 0; i < conf.rx_nseg; ++i) {
      segments[i].split.mp = pools[in.below(2)];
      segments[i].split.length = in.word() % 700;
      segments[i].split.offset = in.byte();
      if (in.below(4) == 0) {
        segments[i].split.length = 0;
        segments[i].split.proto_hdr = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN | RTE_PTYPE_L4_UDP;
      }
    }
    pool = nullptr;
  }
  rte_eth_rx_queue_setup(port.id, queue, ring_size(in), 0, &conf, pool);
}

void configure(Port& port, Bytes& in) {
  if (!port.there || running(port)) return;
  rte_eth_conf conf{};
  conf.rxmode.offloads = kRxOffloads[in.below(std::size(kRxOffloads))];
  conf.rxmode.mtu = static_cast<std::uint16_t>(in.below(2) == 0 ? 1500 : 9000);
  conf.rxmode.mq_mode = in.below(2) == 0 ? RTE_ETH_MQ_RX_NONE : RTE_ETH_MQ_RX_RSS;
  conf.rx_adv_conf.rss_conf.rss_hf = in.below(2) == 0 ? 0 : RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  conf.txmode.offloads = kTxOffloads[in.below(std::size(kTxOffloads))];
  conf.intr_conf.lsc = in.below(2);
  const auto rx = static_cast<std::uint16_t>(in.below(4));
  const auto tx = static_cast<std::uint16_t>(in.below(4));
  if (rte_eth_dev_configure(port.id, rx, tx, &conf) != 0) return;
  for (std::uint16_t i = 0; i < rx; ++i) setup_rx(port, i, in);
  for (std::uint16_t i = 0; i < tx; ++i) {
    rte_eth_txconf txconf{};
    txconf.tx_rs_thresh = in.below(3) == 0 ? in.byte() : std::uint16_t{0};
    txconf.tx_free_thresh = in.below(3) == 0 ? in.byte() : std::uint16_t{0};
    txconf.tx_deferred_start = in.below(8) == 0 ? 1 : 0;
    txconf.offloads = conf.txmode.offloads;
    rte_eth_tx_queue_setup(port.id, i, ring_size(in), 0, &txconf);
  }
}

void start(const Port& port) {
  if (port.there && !running(port)) rte_eth_dev_start(port.id);
}

rte_mbuf* make(Bytes& in, bool fast_free) {
  const unsigned segments = fast_free ? 1 : 1 + in.below(4) * in.below(8);
  rte_mbuf* head = nullptr;
  const std::uint8_t filler = in.byte();
  for (unsigned i = 0; i < segments; ++i) {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pools[0]);
    if (mbuf == nullptr) break;
    const std::uint16_t length = in.word() % (kRoom + 1);
    std::memset(rte_pktmbuf_append(mbuf, length), filler, length);
    if (head == nullptr) {
      head = mbuf;
      in.fill(rte_pktmbuf_mtod(mbuf, void*), std::min<std::size_t>(length, 60));
    } else {
      rte_pktmbuf_chain(head, mbuf);
    }
  }
  if (head == nullptr) return nullptr;
  if (in.below(2) == 0) {
    head->l2_len = in.byte() & 0x7f;
    head->l3_len = in.word() & 0x1ff;
    constexpr std::uint64_t kFlags[] = {RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM,
                                        RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_CKSUM, RTE_MBUF_F_TX_TCP_SEG,
                                        RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM};
    head->ol_flags |= kFlags[in.below(std::size(kFlags))];
  }
  return head;
}

void transmit(const Port& port, Bytes& in) {
  if (!running(port) || data_of(port).nb_tx_queues == 0) return;
  const auto queue = static_cast<std::uint16_t>(in.below(data_of(port).nb_tx_queues));
  const bool fast_free = (data_of(port).dev_conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0;
  std::vector<rte_mbuf*> mbufs;
  for (unsigned left = 1 + in.below(64); left > 0; --left) {
    rte_mbuf* const mbuf = make(in, fast_free);
    if (mbuf == nullptr) break;
    mbufs.push_back(mbuf);
  }
  auto count = static_cast<std::uint16_t>(mbufs.size());
  if (in.below(2) == 0) count = rte_eth_tx_prepare(port.id, queue, mbufs.data(), count);
  const std::uint16_t sent = rte_eth_tx_burst(port.id, queue, mbufs.data(), count);
  rte_pktmbuf_free_bulk(mbufs.data() + sent, static_cast<unsigned>(mbufs.size()) - sent);
}

void receive(const Port& port, Bytes& in) {
  if (!running(port) || data_of(port).nb_rx_queues == 0) return;
  const auto queue = static_cast<std::uint16_t>(in.below(data_of(port).nb_rx_queues));
  rte_mbuf* mbufs[64];
  const std::uint16_t count = rte_eth_rx_burst(port.id, queue, mbufs, static_cast<std::uint16_t>(in.below(65)));
  for (std::uint16_t i = 0; i < count; ++i) {
    rte_mbuf_sanity_check(mbufs[i], 1);
    std::uint32_t length = 0;
    for (const rte_mbuf* m = mbufs[i]; m != nullptr; m = m->next) length += m->data_len;
    if (length != mbufs[i]->pkt_len) std::abort();
  }
  rte_pktmbuf_free_bulk(mbufs, count);
}

void ask_queues(const Port& port, Bytes& in) {
  if (!running(port)) return;
  const rte_eth_dev_data& data = data_of(port);
  if (data.nb_rx_queues != 0) {
    const auto queue = static_cast<std::uint16_t>(in.below(data.nb_rx_queues));
    rte_eth_rx_queue_count(port.id, queue);
    rte_eth_rx_descriptor_status(port.id, queue, in.word());
  }
  if (data.nb_tx_queues != 0) {
    const auto queue = static_cast<std::uint16_t>(in.below(data.nb_tx_queues));
    rte_eth_tx_descriptor_status(port.id, queue, in.word());
    rte_eth_tx_done_cleanup(port.id, queue, in.byte());
  }
}

void switch_queue(const Port& port, Bytes& in) {
  if (!running(port)) return;
  const std::uint16_t queue = in.below(4);
  switch (in.below(6)) {
    case 0:
      rte_eth_dev_rx_queue_stop(port.id, queue);
      break;
    case 4:
      return setup_rx(port, queue, in);
    case 5:
      rte_eth_tx_queue_setup(port.id, queue, ring_size(in), 0, nullptr);
      break;
    case 1:
      rte_eth_dev_rx_queue_start(port.id, queue);
      break;
    case 2:
      rte_eth_dev_tx_queue_stop(port.id, queue);
      break;
    default:
      rte_eth_dev_tx_queue_start(port.id, queue);
      break;
  }
}

void control(const Port& port, Bytes& in) {
  if (!port.there) return;
  rte_ether_addr mac{};
  switch (in.below(12)) {
    case 0:
      rte_eth_dev_set_mtu(port.id, in.word());
      break;
    case 1:
      (void)rte_eth_promiscuous_enable(port.id);
      break;
    case 2:
      (void)rte_eth_promiscuous_disable(port.id);
      break;
    case 3:
      rte_eth_dev_set_link_up(port.id);
      break;
    case 4:
      rte_eth_dev_set_link_down(port.id);
      break;
    case 5:
      in.fill(&mac, sizeof mac);
      rte_eth_dev_mac_addr_add(port.id, &mac, 0);
      break;
    case 6:
      in.fill(&mac, sizeof mac);
      rte_eth_dev_mac_addr_remove(port.id, &mac);
      break;
    case 7:
      in.fill(&mac, sizeof mac);
      rte_eth_dev_default_mac_addr_set(port.id, &mac);
      break;
    case 8:
      in.fill(&mac, sizeof mac);
      rte_eth_dev_set_mc_addr_list(port.id, &mac, in.below(2));
      break;
    case 9:
      rte_eth_stats_reset(port.id);
      break;
    case 10:
      rte_net_vnic_set_faults(port.id, kFaults[in.below(std::size(kFaults))]);
      break;
    default: {
      rte_eth_xstat xstats[512];
      rte_eth_xstats_get(port.id, xstats, 512);
      rte_eth_link link{};
      (void)rte_eth_link_get_nowait(port.id, &link);
    }
  }
}

void steer(const Port& port, Bytes& in) {
  if (!port.there) return;
  if (in.below(2) == 0) {
    rte_eth_rss_reta_entry64 reta[8]{};
    for (auto& group : reta) {
      group.mask = std::uint64_t{in.byte()} << in.below(56);
      std::fill(std::begin(group.reta), std::end(group.reta), in.byte());
    }
    rte_eth_dev_rss_reta_update(port.id, reta, 512);
  } else {
    std::uint8_t key[40];
    in.fill(key, sizeof key);
    rte_eth_rss_conf conf{};
    conf.rss_key = key;
    conf.rss_key_len = in.below(4) == 0 ? in.byte() : std::uint8_t{40};
    conf.rss_hf = std::uint64_t{in.word()} << in.below(48);
    if (conf.rss_key_len <= sizeof key) rte_eth_dev_rss_hash_update(port.id, &conf);
  }
}

void change_flows(Port& port, Bytes& in) {
  if (!port.there) return;
  rte_flow_error error{};
  if (in.below(4) == 0) {
    if (in.below(4) == 0 || port.flows.empty()) {
      rte_flow_flush(port.id, &error);
      port.flows.clear();
    } else {
      rte_flow_destroy(port.id, port.flows.back(), &error);
      port.flows.pop_back();
    }
    return;
  }
  constexpr rte_flow_item_type kTypes[] = {RTE_FLOW_ITEM_TYPE_ETH,  RTE_FLOW_ITEM_TYPE_VLAN, RTE_FLOW_ITEM_TYPE_IPV4,
                                           RTE_FLOW_ITEM_TYPE_IPV6, RTE_FLOW_ITEM_TYPE_UDP,  RTE_FLOW_ITEM_TYPE_TCP,
                                           RTE_FLOW_ITEM_TYPE_VOID, RTE_FLOW_ITEM_TYPE_RAW};
  // Room for the largest of the items.
  struct alignas(8) Item {
    std::uint8_t bytes[64];
  };
  std::vector<Item> specs(8);
  std::vector<Item> masks(8);
  std::vector<rte_flow_item> pattern;
  for (unsigned i = 0, count = in.below(6); i < count; ++i) {
    in.fill(specs[i].bytes, 24);
    std::memset(masks[i].bytes, in.byte(), sizeof masks[i].bytes);
    const rte_flow_item_type type = kTypes[in.below(std::size(kTypes))];
    const bool bare = in.below(2) == 0 || type == RTE_FLOW_ITEM_TYPE_RAW;
    pattern.push_back({type, bare ? nullptr : specs[i].bytes, nullptr, bare ? nullptr : masks[i].bytes});
  }
  pattern.push_back({RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr});
  const rte_flow_action_queue queue{static_cast<std::uint16_t>(in.below(5))};
  const rte_flow_action_mark mark{in.byte()};
  const rte_flow_action actions_of_all[] = {{RTE_FLOW_ACTION_TYPE_QUEUE, &queue}, {RTE_FLOW_ACTION_TYPE_MARK, &mark},
                                            {RTE_FLOW_ACTION_TYPE_DROP, nullptr}, {RTE_FLOW_ACTION_TYPE_COUNT, nullptr},
                                            {RTE_FLOW_ACTION_TYPE_VOID, nullptr}, {RTE_FLOW_ACTION_TYPE_FLAG, nullptr}};
  std::vector<rte_flow_action> actions;
  for (unsigned i = 0, count = in.below(4); i < count; ++i)
    actions.push_back(actions_of_all[in.below(std::size(actions_of_all))]);
  actions.push_back({RTE_FLOW_ACTION_TYPE_END, nullptr});
  rte_flow_attr attr{};
  attr.ingress = 1;
  attr.priority = in.below(3);
  rte_flow* const flow = rte_flow_create(port.id, &attr, pattern.data(), actions.data(), &error);
  if (flow != nullptr) port.flows.push_back(flow);
}

void step(Bytes& in) {
  const unsigned which = in.below(kPorts);
  Port& port = ports[which];
  switch (in.below(16)) {
    case 0:
      return probe(which, in);
    case 1:
      if (in.below(8) == 0) return close(which);
      return in.below(2) == 0 ? change_copies(port, in) : static_cast<void>(0);
    case 2:
    case 3:
      return configure(port, in);
    case 4:
      return start(port);
    case 5:
      if (running(port) && in.below(4) == 0) rte_eth_dev_stop(port.id);
      return;
    case 6:
    case 7:
    case 8:
      return transmit(port, in);
    case 9:
    case 10:
      return receive(port, in);
    case 11:
      return ask_queues(port, in);
    case 12:
      return switch_queue(port, in);
    case 13:
      return control(port, in);
    case 14:
      return change_flows(port, in);
    default:
      if (in.below(2) == 0) return steer(port, in);
      const Port& other = ports[in.below(kPorts)];
      if (running(port) && running(other)) {
        const auto rx_queue = static_cast<std::uint16_t>(in.below(std::max<unsigned>(1, data_of(port).nb_rx_queues)));
        const auto tx_queue = static_cast<std::uint16_t>(in.below(std::max<unsigned>(1, data_of(other).nb_tx_queues)));
        rte_net_vnic_recycle_mbufs(port.id, rx_queue, other.id, tx_queue);
      }
  }
}

}  // namespace
}  // namespace warpline::vnic

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  using namespace warpline::vnic;
  const char* arguments[] = {"fuzz",
                             "--no-huge",
                             "--no-shconf",
                             "-m",
                             "512",
                             "--no-pci",
                             "--no-telemetry",
                             "--lcores=0",
                             "--log-level=emergency",
                             "--iova-mode=va"};
  std::vector<std::string> words(std::begin(arguments), std::end(arguments));
  words.push_back("--file-prefix=vnic-fuzz-" + std::to_string(getpid()));
  static std::vector<char*> argv;
  static std::vector<std::string> kept = words;
  for (std::string& word : kept) argv.push_back(word.data());
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) std::abort();
  // It makes the folder for its files even when told to keep none.
  std::error_code ignored;
  std::filesystem::remove_all(rte_eal_get_runtime_dir(), ignored);
  rte_log_set_global_level(RTE_LOG_EMERG);
  pools[0] = rte_pktmbuf_pool_create("wide", 8191, 32, 0, kRoom + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
  pools[1] = rte_pktmbuf_pool_create("narrow", 8191, 32, 0, 64 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
  if (pools[0] == nullptr || pools[1] == nullptr) std::abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline::vnic;
  Bytes in(data, size);
  copies = std::make_unique<LazyCopies>(1 + static_cast<int>(in.below(5)));
  copies_failed = false;
  // So that most inputs come to burst calls.
  for (unsigned i = 0; i < kPorts && in.below(4) != 0; ++i) {
    probe(i, in);
    if (in.below(4) == 0) change_copies(ports[i], in);
    configure(ports[i], in);
    start(ports[i]);
  }
  while (!in.empty()) step(in);
  for (unsigned i = 0; i < kPorts; ++i) close(i);
  if (copies->open_lanes() != 0 || (!copies_failed && copies->spoiled + copies->misused != 0)) {
    std::fprintf(stderr, "%zu lanes open, %d copies spoiled, %d calls misused\n", copies->open_lanes(), copies->spoiled,
                 copies->misused);
    std::abort();
  }
  for (const rte_mempool* const pool : pools) {
    if (rte_mempool_in_use_count(pool) != 0) {
      std::fprintf(stderr, "%u mbufs of pool %s never came back\n", rte_mempool_in_use_count(pool), pool->name);
      std::abort();
    }
  }
  return 0;
}
