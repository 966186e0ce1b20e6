// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/memory/recycle_hook.h"
#include "warpline/memory/recycle_watch.h"
#include "warpline/port/port_queue.h"

namespace warpline::memory {

/// The queues that one lcore polls and sends on, and nobody else. At most RecycleWatch::kMostQueues of each.
struct RecycleQueues {
  std::vector<port::PortQueue> rx;
  std::vector<port::PortQueue> tx;
};

/// Takes the buffers that one lcore has sent back into the queues that it receives on. Made by set_up_recycling().
/// Owner: that lcore, but for what is marked otherwise.
class Recycler {
 public:
  /// Before each receive burst of RX queue `rx`, an index into RecycleQueues::rx. Returns the buffers recycled. One
  /// branch where nothing is linked, or too little has left to come back.
  std::uint32_t poll(std::size_t rx) {
    if (left_[rx] < due_[rx] && !asked_.load(std::memory_order_relaxed)) return 0;
    return take_back(rx);
  }

  /// Once a burst and transmit queue, if watches(): `packets` that came from RX queue `rx` were handed to transmit
  /// queue `tx`, an index into RecycleQueues::tx.
  void left(std::size_t rx, std::size_t tx, std::uint32_t packets) {
    left_[rx] += packets;
    if (rx_[rx].watch.left(static_cast<std::uint8_t>(tx), packets)) [[unlikely]]
      remap(rx);
  }
  /// Links follow where packets leave. False: they are for good, and left() need not be called.
  [[nodiscard]] bool watches() const { return watches_; }

  /// Control thread: a queue is to be stopped. It may be once unlinked() says so; nothing of here touches it then until
  /// relink(). One control thread at a time.
  void unlink_tx(port::PortQueue tx) { bar(barred_tx_, tx_mask(tx), true); }
  void unlink_rx(port::PortQueue rx) { bar(barred_rx_, rx_mask(rx), true); }
  /// Control thread: the owner has seen all that was asked, in a poll(). One that polls no more never will, and need
  /// not.
  [[nodiscard]] bool unlinked() const;
  /// Control thread: the queue was started again.
  void relink_tx(port::PortQueue tx) { bar(barred_tx_, tx_mask(tx), false); }
  void relink_rx(port::PortQueue rx) { bar(barred_rx_, rx_mask(rx), false); }

  /// Any thread.
  [[nodiscard]] std::uint64_t recycled() const { return recycled_.get(); }
  struct Link {
    port::PortQueue rx;
    port::PortQueue tx;
    bool operator==(const Link&) const = default;
  };
  /// What is linked. The owner, or when it has ended.
  [[nodiscard]] std::vector<Link> links() const;

 private:
  friend class RecycleSetup;
  using Mapping = RecycleWatch::Mapping;
  static constexpr std::uint8_t kNobody = UINT8_MAX;

  struct Receiving {
    port::PortQueue queue;
    RecycleHook hook;
    RecycleWatch watch;
    Mapping links;          ///< in force
    Mapping fixed;          ///< without a watch: what is to be in force
    std::uint8_t turn = 0;  ///< of the links: the one asked last
  };
  struct Sending {
    port::PortQueue queue;
    std::uint8_t claimed_by = kNobody;  ///< index of the RX queue that takes from it
    std::uint16_t batch = 0;            ///< buffers that come back at a time; 0: not known
  };

  explicit Recycler(const RecycleQueues& queues);
  std::uint32_t take_back(std::size_t rx);
  void remap(std::size_t rx);
  void obey();
  /// Links as much of `wanted` as may be, and nothing else.
  void link(std::size_t rx, const Mapping& wanted);
  [[nodiscard]] std::uint64_t tx_mask(port::PortQueue queue) const;
  [[nodiscard]] std::uint64_t rx_mask(port::PortQueue queue) const;
  void bar(std::atomic<std::uint64_t>& barred, std::uint64_t queues, bool on);

  static constexpr std::uint32_t kNever = UINT32_MAX;
  /// By RX queue: packets that left since buffers came back, and from how many on to ask for them.
  std::array<std::uint32_t, RecycleWatch::kMostQueues> left_{};
  std::array<std::uint32_t, RecycleWatch::kMostQueues> due_;
  /// Set by the control thread (release) behind the masks, cleared by the owner (acquire) before it reads them.
  std::atomic<bool> asked_{false};
  bool watches_ = false;
  Counter recycled_;
  std::vector<Receiving> rx_;
  std::vector<Sending> tx_;
  alignas(64) std::atomic<std::uint64_t> barred_tx_{0};  ///< by the control thread: bits of transmit queues
  std::atomic<std::uint64_t> barred_rx_{0};
  std::atomic<std::uint64_t> obeyed_tx_{0};  ///< by the owner (release): those it takes nothing from
  std::atomic<std::uint64_t> obeyed_rx_{0};
};

}  // namespace warpline::memory
