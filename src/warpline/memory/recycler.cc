// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/recycler.h"

#include <algorithm>

#include <rte_ethdev.h>

namespace warpline::memory {

Recycler::Recycler(const RecycleQueues& queues) {
  for (const port::PortQueue rx : queues.rx) rx_.emplace_back().queue = rx;
  for (const port::PortQueue tx : queues.tx) tx_.emplace_back().queue = tx;
  due_.fill(kNever);
}

std::uint32_t Recycler::take_back(std::size_t rx) {
  if (asked_.load(std::memory_order_relaxed)) [[unlikely]]
    obey();
  Receiving& to = rx_[rx];
  // One that gives leaves hardly any room for the other, whose turn is next.
  std::uint32_t moved = 0;
  for (std::uint8_t tries = to.links.count; tries > 0 && moved == 0; --tries) {
    static_assert(RecycleWatch::kMostMapped == 2);
    to.turn ^= to.links.count - 1;
    moved = to.hook.move(to.queue, tx_[to.links.tx[to.turn]].queue);
  }
  if (moved == 0) return 0;
  left_[rx] -= std::min(left_[rx], moved);
  if (watches_) to.watch.came_back(moved);
  recycled_.add(moved);
  return moved;
}

void Recycler::remap(std::size_t rx) {
  Receiving& to = rx_[rx];
  const Mapping wanted = to.watch.decide();
  if (wanted == to.links) return;
  const Mapping before = to.links;
  link(rx, wanted);
  for (std::uint8_t i = 0; i < to.links.count; ++i) {
    const port::PortQueue tx = tx_[to.links.tx[i]].queue;
    // What was sent before would stay between the two for good: each buffer would come back a ring later, and cold.
    if (!before.has(to.links.tx[i])) static_cast<void>(rte_eth_tx_done_cleanup(tx.port, tx.queue, 0));
  }
  if (!(to.links == wanted)) to.watch.set_actual(to.links);
}

void Recycler::link(std::size_t rx, const Mapping& wanted) {
  Receiving& to = rx_[rx];
  for (std::uint8_t i = 0; i < to.links.count; ++i) tx_[to.links.tx[i]].claimed_by = kNobody;
  to.links = {};
  to.turn = 0;
  std::uint32_t due = kNever;
  const bool barred = (obeyed_rx_.load(std::memory_order_relaxed) >> rx & 1) != 0;
  for (std::uint8_t i = 0; i < wanted.count && to.hook.there() && !barred; ++i) {
    const std::uint8_t tx = wanted.tx[i];
    if (tx_[tx].claimed_by != kNobody || (obeyed_tx_.load(std::memory_order_relaxed) >> tx & 1) != 0) continue;
    tx_[tx].claimed_by = static_cast<std::uint8_t>(rx);
    to.links.tx[to.links.count++] = tx;
    // Nobody tells what leaves where nothing is watched: then each poll asks.
    due = watches_ ? std::min<std::uint32_t>(due, tx_[tx].batch) : 0;
  }
  due_[rx] = due;
}

void Recycler::obey() {
  static_cast<void>(asked_.exchange(false, std::memory_order_acq_rel));
  const std::uint64_t tx = barred_tx_.load(std::memory_order_relaxed);
  const std::uint64_t rx = barred_rx_.load(std::memory_order_relaxed);
  obeyed_tx_.store(tx, std::memory_order_relaxed);
  obeyed_rx_.store(rx, std::memory_order_relaxed);
  for (std::size_t i = 0; i < rx_.size(); ++i) {
    const Mapping before = rx_[i].links;
    link(i, watches_ ? before : rx_[i].fixed);
    if (watches_ && !(rx_[i].links == before)) rx_[i].watch.set_actual(rx_[i].links);
  }
  // What the owner did with those queues comes before what the control thread will do.
  obeyed_tx_.store(tx, std::memory_order_release);
  obeyed_rx_.store(rx, std::memory_order_release);
}

bool Recycler::unlinked() const {
  return obeyed_tx_.load(std::memory_order_acquire) == barred_tx_.load(std::memory_order_relaxed) &&
         obeyed_rx_.load(std::memory_order_acquire) == barred_rx_.load(std::memory_order_relaxed);
}

std::uint64_t Recycler::tx_mask(port::PortQueue queue) const {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < tx_.size(); ++i) mask |= std::uint64_t{tx_[i].queue == queue} << i;
  return mask;
}

std::uint64_t Recycler::rx_mask(port::PortQueue queue) const {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < rx_.size(); ++i) mask |= std::uint64_t{rx_[i].queue == queue} << i;
  return mask;
}

void Recycler::bar(std::atomic<std::uint64_t>& barred, std::uint64_t queues, bool on) {
  const std::uint64_t before = barred.load(std::memory_order_relaxed);
  barred.store(on ? before | queues : before & ~queues, std::memory_order_relaxed);
  asked_.store(true, std::memory_order_release);
}

std::vector<Recycler::Link> Recycler::links() const {
  std::vector<Link> all;
  for (const Receiving& to : rx_) {
    for (std::uint8_t i = 0; i < to.links.count; ++i) all.push_back({to.queue, tx_[to.links.tx[i]].queue});
  }
  return all;
}

}  // namespace warpline::memory
