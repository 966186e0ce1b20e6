// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/counter.h"
#include "base/result.h"
#include "config/config.h"
#include "memory/recycle_watch.h"
#include "runtime/port_queue.h"

struct rte_mempool;

namespace warpline {

/// The queues that one lcore polls and sends on, and nobody else. At most kMostQueues of each.
struct RecycleQueues {
  std::vector<PortQueue> rx;
  std::vector<PortQueue> tx;
};

/// `rx` takes back the buffers of what `tx` has sent.
struct RecycleLink {
  PortQueue rx;
  PortQueue tx;
  rte_mempool* sent = nullptr;  ///< that packets sent on `tx` are of; null: not known before traffic comes
};

struct RecyclePlan {
  RecycleWay way = RecycleWay::automatic;
  std::vector<RecycleQueues> lcores;
  /// For RecycleWay::direct; those that cannot be are refused in words. Without any, direct maps each RX queue to where
  /// its first packets leave, for good. RecycleWay::automatic maps by itself and heeds none.
  std::vector<RecycleLink> links;
};

/// How the buffers that one lcore sends come back to the queues that it receives on. Owner: that lcore, but for what is
/// marked as the control thread's.
class Recycler {
 public:
  static constexpr std::size_t kMostQueues = RecycleWatch::kMostQueues;

  ~Recycler();
  Recycler(const Recycler&) = delete;
  Recycler& operator=(const Recycler&) = delete;

  /// Before each receive burst of RX queue `rx`, an index into RecycleQueues::rx: takes back what it can. Returns the
  /// buffers recycled. One branch where nothing is linked.
  std::uint32_t poll(std::size_t rx) {
    if (!busy_[rx] && !asked_.load(std::memory_order_relaxed)) [[likely]]
      return 0;
    return take_back(rx);
  }

  /// Once a burst and transmit queue: `packets` that came from RX queue `rx` were handed to transmit queue `tx`, an
  /// index into RecycleQueues::tx. Call it only if watches().
  void left(std::size_t rx, std::size_t tx, std::uint32_t packets) {
    if (watches_[rx].left(static_cast<std::uint8_t>(tx), packets)) [[unlikely]]
      remap(rx);
  }
  [[nodiscard]] bool watches() const { return !watches_.empty(); }

  /// Control thread: nothing is to be taken from a transmit queue, or given to an RX queue, that will be stopped. Done
  /// when unlinked(); the queue may be stopped then, and nothing touches it until relink().
  void unlink_tx(PortQueue tx);
  void unlink_rx(PortQueue rx);
  /// Control thread: whether the owner has done what was asked. It does so in its next poll(); an owner that has ended
  /// never will, and need not.
  [[nodiscard]] bool unlinked() const;
  /// Control thread, after the queue was started: it may be linked again.
  void relink_tx(PortQueue tx);
  void relink_rx(PortQueue rx);

  /// Any thread.
  [[nodiscard]] std::uint64_t recycled() const { return recycled_.get(); }
  /// Any thread: what is linked now.
  [[nodiscard]] std::vector<RecycleLink> links() const;

 private:
  friend class RecycleSetup;
  struct Hook;
  explicit Recycler(const RecycleQueues& queues);
  std::uint32_t take_back(std::size_t rx);
  void remap(std::size_t rx);

  std::vector<std::uint8_t> busy_;     ///< by RX queue: how many links it has
  std::vector<RecycleWatch> watches_;  ///< by RX queue; none: links are for good
  std::atomic<bool> asked_{false};     ///< by the control thread: look at the masks below
  Counter recycled_;
  std::unique_ptr<Hook> hook_;
};

/// What recycling was set up to.
struct Recycling {
  std::vector<std::unique_ptr<Recycler>> lcores;  ///< as RecyclePlan::lcores
  std::vector<std::string> notes;                 ///< each one line: what was refused, why, and what is used instead
  std::string way;                                ///< in force: "direct over fast-free", "cache", ...
};

/// Sets queues up for plan.way. Between Port::attach and Port::start of all ports named: transmit queues whose
/// thresholds would keep buffers from ever moving are set up again with others. Refusals are notes, not errors.
[[nodiscard]] Result<Recycling> set_up_recycling(const RecyclePlan& plan);

}  // namespace warpline
