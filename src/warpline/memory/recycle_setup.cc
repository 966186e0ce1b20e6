// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_eth_dev_conf_get, unchanged since 21.11
#include "warpline/memory/recycle_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <rte_ethdev.h>

namespace warpline::memory {
namespace {

std::string port_name(std::uint16_t port) {
  char name[RTE_ETH_NAME_MAX_LEN];
  return rte_eth_dev_get_name_by_port(port, name) == 0 ? fmt::format("port {}", name) : fmt::format("port {}", port);
}
std::string rx_name(port::PortQueue rx) { return fmt::format("{} rx {}", port_name(rx.port), rx.queue); }
std::string tx_name(port::PortQueue tx) { return fmt::format("{} tx {}", port_name(tx.port), tx.queue); }

std::string driver_of(std::uint16_t port) {
  rte_eth_dev_info info;
  return rte_eth_dev_info_get(port, &info) == 0 && info.driver_name != nullptr ? info.driver_name : "";
}

std::optional<rte_eth_rxq_info> rx_info(port::PortQueue rx) {
  rte_eth_rxq_info info{};
  if (rte_eth_rx_queue_info_get(rx.port, rx.queue, &info) != 0) return std::nullopt;
  return info;
}
std::optional<rte_eth_txq_info> tx_info(port::PortQueue tx) {
  rte_eth_txq_info info{};
  if (rte_eth_tx_queue_info_get(tx.port, tx.queue, &info) != 0) return std::nullopt;
  return info;
}

bool is_there(port::PortQueue queue, bool rx) {
  if (rte_eth_dev_is_valid_port(queue.port) == 0) return false;
  rte_eth_dev_info info;
  if (rte_eth_dev_info_get(queue.port, &info) != 0) return false;
  return queue.queue < (rx ? info.nb_rx_queues : info.nb_tx_queues);
}

}  // namespace

std::optional<std::uint64_t> Recycling::recycled() const {
  std::optional<std::uint64_t> sum;
  for (const auto& lcore : lcores) {
    if (lcore != nullptr) sum = sum.value_or(0) + lcore->recycled();
  }
  return sum;
}

/// Works a plan off, lcore by lcore.
class RecycleSetup {
 public:
  explicit RecycleSetup(const RecyclePlan& plan) : plan_(plan), vnic_(port::vnic_calls()) {}

  Recycling run() && {
    for (const RecycleQueues& lcore : plan_.lcores) {
      for (const port::PortQueue tx : lcore.tx) choose_way_to_free(tx);
    }
    if (links()) {
      for (const RecycleQueues& lcore : plan_.lcores) add(lcore);
      for (const RecycleLink& wish : plan_.links) {
        if (plan_.way == RecycleWay::direct) grant(wish);
      }
      for (auto& lcore : made_.lcores) {
        if (lcore != nullptr) note_batches(*lcore);
        if (lcore != nullptr && !may_link(*lcore)) lcore.reset();
      }
    } else {
      made_.lcores.resize(plan_.lcores.size());
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool links() const { return plan_.way == RecycleWay::direct || plan_.way == RecycleWay::automatic; }

  /// Drivers do not all tell what a queue was set up to; what the port was set up to holds for all of its queues.
  static bool frees_fast(port::PortQueue tx) {
    rte_eth_conf conf{};
    if (rte_eth_dev_conf_get(tx.port, &conf) != 0) return false;
    const auto info = tx_info(tx);
    return ((conf.txmode.offloads | (info ? info->conf.offloads : 0)) & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0;
  }

  [[nodiscard]] bool is_vnic(std::uint16_t port) const { return vnic_ != nullptr && driver_of(port) == "net_vnic"; }

  [[nodiscard]] bool to_cache(port::PortQueue tx, bool on) const {
    const auto way = on ? RTE_NET_VNIC_FREE_CACHE : RTE_NET_VNIC_FREE_CHECKED;
    return is_vnic(tx.port) && vnic_->set_tx_free(tx.port, tx.queue, way) == 0;
  }

  void choose_way_to_free(port::PortQueue tx) {
    if (!is_there(tx, false)) return;  // said where it is wanted
    const bool fast = frees_fast(tx);
    const bool cached = to_cache(tx, plan_.way != RecycleWay::off && plan_.way != RecycleWay::fast_free && !fast);
    if (plan_.way == RecycleWay::fast_free && !fast) {
      note(tx_name(tx), "no fast free", "the driver does not offer it, or its buffers are not all of one pool",
           "they are freed as with --recycle off");
    } else if (plan_.way == RecycleWay::cache && !cached) {
      note(tx_name(tx), "no freeing into the cache", fmt::format("only net_vnic does that, not {}", driver_of(tx.port)),
           "they are freed as with --recycle off");
    }
  }

  /// How buffers of `tx` come back if not directly.
  [[nodiscard]] std::string fallback(port::PortQueue tx) const {
    if (!is_there(tx, false)) return "nothing is linked";
    if (frees_fast(tx)) return "fast-free is used instead";
    return is_vnic(tx.port) ? "cache is used instead" : "off is used instead";
  }

  void note(const std::string& subject, std::string_view what, const std::string& why, const std::string& instead) {
    std::string text = fmt::format("{}: {}: {}; {}", subject, what, why, instead);
    if (std::ranges::find(made_.notes, text) == made_.notes.end()) made_.notes.push_back(std::move(text));
  }

  /// Why nothing can be recycled into `rx`, or an empty string.
  [[nodiscard]] std::string obstacle(port::PortQueue rx) const {
    if (!is_there(rx, true)) return fmt::format("there is no {}", rx_name(rx));
    const auto info = rx_info(rx);
    constexpr std::uint64_t kSeveral = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
    if (info && (info->scattered_rx != 0 || (info->conf.offloads & kSeveral) != 0)) {
      return fmt::format("{} receives frames into several buffers", rx_name(rx));
    }
    if (!hook_of(rx).there()) return fmt::format("{} has no hooks for it", driver_of(rx.port));
    return {};
  }

  [[nodiscard]] RecycleHook hook_of(port::PortQueue rx) const {
    RecycleHook hook;
    hook.ethdev = EthdevRecycling::of(rx);
    if (is_vnic(rx.port)) hook.vnic = vnic_->recycle_mbufs;
    return hook;
  }

  void add(const RecycleQueues& queues) {
    made_.lcores.push_back(std::unique_ptr<Recycler>(new Recycler(queues)));
    Recycler& lcore = *made_.lcores.back();
    lcore.watches_ = plan_.way == RecycleWay::automatic || plan_.links.empty();
    const bool too_many = std::max(queues.rx.size(), queues.tx.size()) > RecycleWatch::kMostQueues;
    if (too_many) {
      note(fmt::format("an lcore with {} receive and {} transmit queues", queues.rx.size(), queues.tx.size()),
           "no direct recycling", fmt::format("{} of each are the most", RecycleWatch::kMostQueues),
           "its buffers go through their pools");
      made_.lcores.back().reset();
      return;
    }
    for (Recycler::Receiving& to : lcore.rx_) {
      to.watch = RecycleWatch(plan_.way == RecycleWay::direct);
      if (const std::string why = obstacle(to.queue); why.empty()) {
        to.hook = hook_of(to.queue);
      } else if (lcore.watches_ && !queues.tx.empty()) {
        note(rx_name(to.queue), "no direct recycling", why, fallback(queues.tx.front()));
      }
    }
    if (lcore.watches_ && queues.tx.empty()) {
      for (const port::PortQueue rx : queues.rx) {
        note(rx_name(rx), "no direct recycling", "its packets are sent by another lcore",
             "their buffers go through the pool");
      }
    }
    if (!lcore.watches_) return;
    for (const port::PortQueue tx : queues.tx) {
      for (const Recycler::Receiving& to : lcore.rx_) {
        if (to.hook.there() && is_there(tx, false)) fit_thresholds(to, tx);
      }
    }
  }

  /// A link that was asked for.
  void grant(const RecycleLink& wish) {
    const std::string why = refusal(wish);
    if (why.empty()) return;
    note(rx_name(wish.rx), fmt::format("not linked with {}", tx_name(wish.tx)), why, fallback(wish.tx));
  }

  /// Links, or says why not.
  std::string refusal(const RecycleLink& wish) {
    if (!is_there(wish.rx, true)) return "there is no such receive queue";
    if (!is_there(wish.tx, false)) return "there is no such transmit queue";
    Recycler* owner = nullptr;
    std::size_t rx = 0;
    std::size_t tx = 0;
    for (std::size_t i = 0; i < plan_.lcores.size(); ++i) {
      const RecycleQueues& lcore = plan_.lcores[i];
      rx = static_cast<std::size_t>(std::ranges::find(lcore.rx, wish.rx) - lcore.rx.begin());
      tx = static_cast<std::size_t>(std::ranges::find(lcore.tx, wish.tx) - lcore.tx.begin());
      const bool receives = rx < lcore.rx.size();
      const bool sends = tx < lcore.tx.size();
      if (receives != sends) return "one lcore receives and another sends";
      if (receives && sends) {
        owner = made_.lcores[i].get();
        break;
      }
    }
    if (owner == nullptr) return "no lcore polls them";
    if (std::string why = obstacle(wish.rx); !why.empty()) return why;
    Recycler::Receiving& to = owner->rx_[rx];
    if (to.hook.ethdev == nullptr && !is_vnic(wish.tx.port)) {
      return fmt::format("{} has no hooks for it", driver_of(wish.tx.port));
    }
    const auto info = rx_info(wish.rx);
    if (wish.sent != nullptr && info && info->mp != wish.sent) return "what is sent there is of another pool";
    for (const Recycler::Receiving& other : owner->rx_) {
      if (other.fixed.has(static_cast<std::uint8_t>(tx))) {
        return fmt::format("{} takes its buffers already", rx_name(other.queue));
      }
    }
    if (to.fixed.count == RecycleWatch::kMostMapped) return "it takes those of two already";
    if (std::string why = fit_thresholds(to, wish.tx); !why.empty()) return why;
    to.fixed.tx[to.fixed.count++] = static_cast<std::uint8_t>(tx);
    owner->link(rx, to.fixed);
    return {};
  }

  /// The driver moves whole batches of tx_rs_thresh, and only if they fit what the receiver posts at once: DPDK's own
  /// call does nothing, silently, where they do not. Sets the transmit queue up again, or says why that does not help.
  std::string fit_thresholds(const Recycler::Receiving& to, port::PortQueue tx) {
    const auto from = tx_info(tx);
    const auto into = rx_info(to.queue);
    if (!from || !into) return {};  // a driver that does not tell: what comes back will
    const std::uint16_t demand = to.hook.ethdev != nullptr ? to.hook.ethdev->requirement() : 0;
    const std::uint16_t posts = into->conf.rx_free_thresh;
    const std::uint16_t batch = from->conf.tx_rs_thresh;
    const bool fits = demand != 0 ? batch == demand : posts == 0 || batch <= posts;
    if (fits) return {};
    const std::uint16_t wanted = demand != 0 ? demand : posts;
    rte_eth_txconf conf = from->conf;
    conf.tx_rs_thresh = wanted;
    conf.tx_free_thresh = std::max(conf.tx_free_thresh, wanted);
    if (from->nb_desc < conf.tx_rs_thresh + conf.tx_free_thresh) conf.tx_free_thresh = wanted;
    const int socket = rte_eth_dev_socket_id(tx.port);
    const auto node = socket < 0 ? static_cast<unsigned>(SOCKET_ID_ANY) : static_cast<unsigned>(socket);
    const int problem = rte_eth_tx_queue_setup(tx.port, tx.queue, from->nb_desc, node, &conf);
    if (problem != 0) {
      static_cast<void>(rte_eth_tx_queue_setup(tx.port, tx.queue, from->nb_desc, node, &from->conf));
      return fmt::format(
          "its tx_rs_thresh of {} keeps buffers from moving where {} are posted at once, and {} is none "
          "that the driver takes",
          batch, wanted, wanted);
    }
    if (!frees_fast(tx)) static_cast<void>(to_cache(tx, true));
    note(tx_name(tx), "set up again",
         fmt::format("its tx_rs_thresh of {} would keep buffers from ever moving to {}, which posts {} at once", batch,
                     rx_name(to.queue), wanted),
         fmt::format("it is {} now", wanted));
    return {};
  }

  static void note_batches(Recycler& lcore) {
    for (Recycler::Sending& from : lcore.tx_) {
      if (!is_there(from.queue, false)) continue;
      if (const auto info = tx_info(from.queue)) from.batch = info->conf.tx_rs_thresh;
    }
  }

  static bool may_link(const Recycler& lcore) {
    return std::ranges::any_of(lcore.rx_, [&](const Recycler::Receiving& to) {
      return to.hook.there() && (lcore.watches_ ? !lcore.tx_.empty() : to.fixed.count != 0);
    });
  }

  const RecyclePlan& plan_;
  const port::VnicCalls* vnic_;
  Recycling made_;
};

Recycling set_up_recycling(const RecyclePlan& plan) { return RecycleSetup(plan).run(); }

}  // namespace warpline::memory
