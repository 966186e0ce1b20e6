// SPDX-License-Identifier: Apache-2.0
#include "soak_traffic.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <rte_bus_vdev.h>
#include <rte_mbuf.h>

#include "vnic/api/set_faults.h"
#include "vnic/device/device.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kFrames = 64;
constexpr unsigned kMbufs = 32767;
constexpr std::uint16_t kRoom = 2048;
constexpr unsigned kBurst = 32;

// The other side's rounds, at most, that a port stays stopped or gone.
constexpr std::uint64_t kRestartRounds = 16;
constexpr std::uint64_t kReopenRounds = 64;

/// What may go wrong for a while. Frames are changed by one bit or cut at most, so that they can be told.
constexpr const char* kFaults[] = {"",
                                   "",
                                   "loss=0.1",
                                   "duplicate=0.2,reorder=0.1",
                                   "corrupt=0.1",
                                   "truncate=0.1",
                                   "delay=20us,jitter=50us",
                                   "rate=1gbit,queue_bytes=32Ki,ecn_bytes=4Ki",
                                   "stall=0.3,rx_out=0.3",
                                   "tx_full=0.5",
                                   "flap_frames=500,flap_lost=20",
                                   "burst_loss_enter=0.01,burst_loss_leave=0.2,reorder=0.3,reorder_depth=64"};

/// Counters of frames lost on their way from a port, and to one.
constexpr Count kLostFrom[] = {Count::fault_loss,   Count::fault_flap,     Count::tx_queue_full, Count::tx_no_peer,
                               Count::tx_link_down, Count::tx_iommu_fault, Count::tx_malformed};
constexpr Count kLostTo[] = {Count::rx_no_descriptor, Count::rx_runt,        Count::rx_giant,
                             Count::rx_filtered,      Count::rx_link_down,   Count::rx_stopped,
                             Count::rx_too_long,      Count::rx_iommu_fault, Count::rx_flow_dropped};

Device& device_at(std::uint16_t id) { return device_of(&rte_eth_devices[id]); }

}  // namespace

bool start_eal() {
  std::vector<std::string> words = {"soak",     "--no-huge", "--no-shconf",      "-m",
                                    "768",      "--no-pci",  "--no-telemetry",   "--iova-mode=va",
                                    "--lcores", "0@(0-127)", "--log-level=error"};
  words[9] = "0@(0-" + std::to_string(std::max(1U, std::thread::hardware_concurrency()) - 1) + ")";
  words.push_back("--file-prefix=vnic-soak-" + std::to_string(getpid()));
  std::vector<char*> argv;
  static std::vector<std::string> kept = words;
  for (std::string& word : kept) argv.push_back(word.data());
  const bool started = rte_eal_init(static_cast<int>(argv.size()), argv.data()) >= 0;
  std::error_code ignored;
  std::filesystem::remove_all(rte_eal_get_runtime_dir(), ignored);
  return started;
}

Traffic::Traffic(std::uint64_t seed, std::string engine)
    : seed_(seed), engine_(std::move(engine)), frames_{{kFrames, 60, seed}, {kFrames, 1514, seed + 1}} {
  Random random(seed);
  for (unsigned i = 0; i < 2; ++i) {
    Side& side = sides_[i];
    side.name = "net_vnic" + std::to_string(i);
    side.counted.resize(kCounts);
    // Without a cache: whoever looks sees every mbuf in the pool.
    side.pool = rte_pktmbuf_pool_create(("soak" + std::to_string(i)).c_str(), kMbufs, 0, 0,
                                        kRoom + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    if (side.pool == nullptr) {
      problem("no memory for a pool");
      return;
    }
    open(side, random);
  }
  for (Side& side : sides_) side.thread = std::thread([this, &side] { run(side); });
}

Traffic::~Traffic() {
  ended_ = true;
  for (Side& side : sides_) {
    if (side.thread.joinable()) side.thread.join();
  }
}

void Traffic::problem(const std::string& what) {
  std::fprintf(stderr, "soak: %s\n", what.c_str());
  problems_.fetch_add(1);
}

// ---- the threads

void Traffic::send(Side& side, Random& random) {
  const WireFrames& frames = frames_[&side - sides_];
  rte_mbuf* mbufs[kBurst];
  const auto count = static_cast<unsigned>(1 + random.below(std::size(mbufs)));
  if (rte_pktmbuf_alloc_bulk(side.pool, mbufs, count) != 0) return;
  for (unsigned i = 0; i < count; ++i) {
    const packet::FrameBytes& bytes = frames[static_cast<std::uint32_t>(random.below(kFrames))];
    std::memcpy(rte_pktmbuf_append(mbufs[i], static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
  }
  const auto queue = static_cast<std::uint16_t>(random.below(side.queues));
  const std::uint16_t went = rte_eth_tx_burst(side.id, queue, mbufs, static_cast<std::uint16_t>(count));
  side.sent += went;
  rte_pktmbuf_free_bulk(mbufs + went, count - went);
}

void Traffic::receive(Side& side, const WireFrames& frames) {
  rte_mbuf* mbufs[64];
  for (std::uint16_t queue = 0; queue < side.queues; ++queue) {
    const std::uint16_t count = rte_eth_rx_burst(side.id, queue, mbufs, std::size(mbufs));
    side.received += count;
    for (std::uint16_t i = 0; i < count; ++i) {
      packet::FrameBytes bytes;
      for (const rte_mbuf* m = mbufs[i]; m != nullptr; m = m->next) {
        const auto* const data = rte_pktmbuf_mtod(m, const std::uint8_t*);
        bytes.insert(bytes.end(), data, data + m->data_len);
      }
      const WireFrames::Finding finding = frames.look_at(bytes);
      if (finding.foreign) ++side.foreign;
      if (finding.truncated || finding.corrupted || finding.marked) ++side.changed;
    }
    rte_pktmbuf_free_bulk(mbufs, count);
  }
}

void Traffic::run(Side& side) {
  Random random(seed_ + 10 + static_cast<std::uint64_t>(&side - sides_));
  const WireFrames& others = frames_[1 - (&side - sides_)];
  while (!ended_.load(std::memory_order_relaxed)) {
    {
      const std::scoped_lock round(side.polling);
      for (int i = 0; side.running && i < 8; ++i) {
        send(side, random);
        receive(side, others);
      }
    }
    side.rounds.fetch_add(1, std::memory_order_release);
    side.rounds.notify_one();
    std::this_thread::yield();
  }
}

void Traffic::await_rounds(const Side& side, std::uint64_t rounds) {
  const std::uint64_t end = side.rounds.load(std::memory_order_acquire) + rounds;
  for (std::uint64_t now = end - rounds; now < end; now = side.rounds.load(std::memory_order_acquire)) {
    side.rounds.wait(now, std::memory_order_acquire);
  }
}

// ---- what changes

bool Traffic::configure(Side& side, Random& random) {
  constexpr std::uint16_t kRings[] = {64, 65, 100, 512, 1024, 4096};
  side.queues = static_cast<std::uint16_t>(1 + random.below(4));
  rte_eth_conf conf{};
  conf.rxmode.mtu = 9000;
  conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
  if (random.below(2) == 0) conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH;
  const bool split = random.below(3) == 0;
  if (split) conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP;
  if (random.below(2) == 0) conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  if (rte_eth_dev_configure(side.id, side.queues, side.queues, &conf) != 0) return false;
  rte_eth_rxseg segments[2]{};
  for (rte_eth_rxseg& segment : segments) segment.split.mp = side.pool;
  segments[0].split.length = 64;
  rte_eth_rxconf rx{};
  rx.offloads = conf.rxmode.offloads;
  rx.rx_seg = segments;
  rx.rx_nseg = split ? 2 : 0;
  rte_eth_txconf tx{};
  tx.offloads = conf.txmode.offloads;
  for (std::uint16_t i = 0; i < side.queues; ++i) {
    const std::uint16_t rx_ring = kRings[random.below(std::size(kRings))];
    const std::uint16_t tx_ring = kRings[random.below(std::size(kRings))];
    if (rte_eth_rx_queue_setup(side.id, i, rx_ring, 0, &rx, split ? nullptr : side.pool) != 0) return false;
    if (rte_eth_tx_queue_setup(side.id, i, tx_ring, 0, &tx) != 0) return false;
  }
  return rte_eth_promiscuous_enable(side.id) == 0 && rte_eth_dev_start(side.id) == 0;
}

void Traffic::open(Side& side, Random& random) {
  const std::string& peer = side.name == "net_vnic0" ? "net_vnic1" : "net_vnic0";
  const std::string args =
      "wire=" + peer + ",engine=" + engine_ + ",queues=4,seed=" + std::to_string(random.next() >> 32);
  if (rte_vdev_init(side.name.c_str(), args.c_str()) != 0 ||
      rte_eth_dev_get_port_by_name(side.name.c_str(), &side.id) != 0) {
    return problem("a port was not probed");
  }
  if (!configure(side, random)) return problem("a port was not configured");
  side.running = true;
}

void Traffic::stop(Side& side) {
  side.running = false;
  if (rte_eth_dev_stop(side.id) != 0) problem("a port did not stop");
  if (rte_mempool_in_use_count(side.pool) != 0) problem("mbufs did not come back to " + std::string(side.pool->name));
}

void Traffic::restart(Side& side, Random& random) {
  const std::scoped_lock quiet(side.polling);
  stop(side);
  await_rounds(other_of(side), random.below(kRestartRounds));
  if (rte_eth_dev_start(side.id) != 0) return problem("a port did not start again");
  side.running = true;
}

void Traffic::reconfigure(Side& side, Random& random) {
  const std::scoped_lock quiet(side.polling);
  stop(side);
  // Rules may lead to queues that are no more.
  rte_flow_error error{};
  rte_flow_flush(side.id, &error);
  side.flows.clear();
  if (!configure(side, random)) return problem("a port was not configured anew");
  side.running = true;
}

void Traffic::restart_queue(Side& side, Random& random) {
  const std::scoped_lock quiet(side.polling);
  const auto queue = static_cast<std::uint16_t>(random.below(side.queues));
  int status = rte_eth_dev_rx_queue_stop(side.id, queue);
  if (random.below(2) == 0) status |= rte_eth_dev_tx_queue_stop(side.id, queue);
  status |= rte_eth_dev_rx_queue_start(side.id, queue);
  if (rte_eth_devices[side.id].data->tx_queue_state[queue] == RTE_ETH_QUEUE_STATE_STOPPED) {
    status |= rte_eth_dev_tx_queue_start(side.id, queue);
  }
  if (status != 0) problem("a queue did not stop or start");
}

void Traffic::close(Side& side) {
  side.flows.clear();
  for (unsigned i = 0; i < kCounts; ++i) side.counted[i] = count(side, static_cast<Count>(i));
  if (rte_vdev_uninit(side.name.c_str()) != 0) problem("a port did not close");
  side.id = RTE_MAX_ETHPORTS;
}

void Traffic::close_and_reopen(Side& side, Random& random) {
  const Side& other = other_of(side);
  const auto gone_to_it = [&] { return other.sent + count(other, Count::fault_duplicate); };
  const std::scoped_lock quiet(side.polling);
  stop(side);
  const std::uint64_t before = gone_to_it();
  close(side);
  side.unseen_at_most += gone_to_it() - before + 2 * kBurst;
  await_rounds(other, random.below(kReopenRounds));
  open(side, random);
}

void Traffic::change_faults(const Side& side, Random& random) {
  const char* const faults = kFaults[random.below(std::size(kFaults))];
  if (rte_net_vnic_set_faults(side.id, "") != 0 || rte_net_vnic_set_faults(side.id, faults) != 0) {
    problem(std::string("faults were refused: ") + faults);
  }
}

void Traffic::change_flows(Side& side, Random& random) {
  rte_flow_error error{};
  if (side.flows.size() > 4) {
    if (rte_flow_destroy(side.id, side.flows.front(), &error) != 0) problem("a flow rule did not go");
    side.flows.erase(side.flows.begin());
    return;
  }
  rte_flow_attr attr{};
  attr.ingress = 1;
  const rte_flow_item pattern[] = {{RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_IPV4, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}};
  const rte_flow_action_queue queue{static_cast<std::uint16_t>(random.below(side.queues))};
  const rte_flow_action actions[] = {
      {RTE_FLOW_ACTION_TYPE_QUEUE, &queue}, {RTE_FLOW_ACTION_TYPE_COUNT, nullptr}, {RTE_FLOW_ACTION_TYPE_END, nullptr}};
  rte_flow* const flow = rte_flow_create(side.id, &attr, pattern, actions, &error);
  if (flow == nullptr) return problem("a flow rule was refused");
  side.flows.push_back(flow);
}

void Traffic::change_table(Side& side, Random& random) {
  rte_eth_rss_reta_entry64 reta[8]{};
  for (rte_eth_rss_reta_entry64& group : reta) {
    group.mask = random.next();
    for (std::uint16_t& entry : group.reta) entry = static_cast<std::uint16_t>(random.below(side.queues));
  }
  if (rte_eth_dev_rss_reta_update(side.id, reta, 512) != 0) problem("the RSS table was refused");
}

void Traffic::ask(const Side& side) {
  rte_eth_stats stats{};
  rte_eth_xstat xstats[512];
  rte_eth_link link{};
  if (rte_eth_stats_get(side.id, &stats) != 0 || rte_eth_xstats_get(side.id, xstats, 512) <= 0 ||
      rte_eth_link_get_nowait(side.id, &link) != 0) {
    problem("a port does not answer");
  }
}

// ---- what must hold

std::uint64_t Traffic::count(const Side& side, Count which) const {
  const std::uint64_t value = side.counted[static_cast<unsigned>(which)];
  if (side.id == RTE_MAX_ETHPORTS) return value;
  std::uint64_t id = 0;
  std::uint64_t now = 0;
  rte_eth_xstats_get_id_by_name(side.id, kCountNames[static_cast<unsigned>(which)], &id);
  rte_eth_xstats_get_by_id(side.id, &id, &now, 1);
  return value + now;
}

std::string Traffic::count_text(const Side& side, Count which) const {
  return std::string(" ") + kCountNames[static_cast<unsigned>(which)] + " " + std::to_string(count(side, which));
}

void Traffic::account(Side& from, Side& to) {
  std::uint64_t lost = 0;
  for (const Count reason : kLostFrom) lost += count(from, reason);
  for (const Count reason : kLostTo) lost += count(to, reason);
  std::uint64_t on_the_way = 0;
  if (from.id != RTE_MAX_ETHPORTS) {
    const Device& device = device_at(from.id);
    on_the_way += device.egress.faults().held();
    for (const TxQueue* queue : device.tx) {
      if (queue != nullptr && queue->started) on_the_way += queue->posted.load() - queue->fetched;
    }
  }
  if (to.id != RTE_MAX_ETHPORTS) {
    Ingress& ingress = device_at(to.id).ingress;
    for (std::uint16_t i = 0; i < ingress.queues(); ++i) on_the_way += ingress.buffer(i).frames();
    for (const RxQueue* queue : device_at(to.id).rx) {
      if (queue != nullptr && queue->started) on_the_way += (queue->filled - queue->harvested) / queue->group;
    }
  }
  const std::uint64_t came = from.sent + count(from, Count::fault_duplicate);
  const std::uint64_t went = to.received + lost + on_the_way + to.unseen;
  if (came >= went && came - went <= to.unseen_at_most) {
    to.unseen += came - went;
    to.unseen_at_most = 0;
  } else {
    std::string what =
        from.name + ": " + std::to_string(came) + " frames came, " + std::to_string(went) + " are accounted for:";
    for (const Count reason : kLostFrom) what += count_text(from, reason);
    for (const Count reason : kLostTo) what += count_text(to, reason);
    problem(what + " tx_packets " + std::to_string(count(from, Count::tx_packets)) + " of " +
            std::to_string(from.sent) + " rx_packets " + std::to_string(count(to, Count::rx_packets)) + " of " +
            std::to_string(to.received) + " on the way " + std::to_string(on_the_way));
  }
  if (to.foreign != 0) problem(to.name + ": frames that nobody sent");
  const std::uint64_t changes =
      count(from, Count::fault_corrupt) + count(from, Count::fault_truncate) + count(from, Count::fault_ecn_marked);
  if (to.changed > changes) problem(to.name + ": frames were changed that no fault has changed");
}

void Traffic::check() {
  const std::scoped_lock quiet(sides_[0].polling, sides_[1].polling);
  // An engine's thread goes on by itself: only while it has nothing to do is there something to compare.
  if (engine_ != "inline") return;
  account(sides_[0], sides_[1]);
  account(sides_[1], sides_[0]);
}

Totals Traffic::finish() {
  ended_ = true;
  for (Side& side : sides_) {
    if (side.thread.joinable()) side.thread.join();
  }
  Totals totals;
  for (Side& side : sides_) {
    if (side.id != RTE_MAX_ETHPORTS) stop(side);
  }
  account(sides_[0], sides_[1]);
  account(sides_[1], sides_[0]);
  for (Side& side : sides_) {
    if (side.id != RTE_MAX_ETHPORTS) close(side);
    totals.sent += side.sent;
    totals.received += side.received;
    totals.leaked += rte_mempool_in_use_count(side.pool);
    totals.duplicated += count(side, Count::fault_duplicate);
    for (const Count reason : kLostFrom) totals.lost += count(side, reason);
    for (const Count reason : kLostTo) totals.lost += count(side, reason);
    totals.lost += side.unseen;
    rte_mempool_free(side.pool);
  }
  totals.problems = problems();
  return totals;
}

}  // namespace warpline::vnic
