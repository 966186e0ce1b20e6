// SPDX-License-Identifier: Apache-2.0
#include "soak_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

namespace warpline::soak {
namespace {

template <typename T>
T or_throw(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return *std::move(result);
}
void or_throw(const Result<void>& result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
}

memory::PacketPool make_pool(const char* name, std::uint32_t size, std::uint32_t cache) {
  static unsigned made = 0;
  return or_throw(memory::PacketPool::make(fmt::format("{}{}", name, made++), size, cache, 2048, runtime::kAnyNode));
}

constexpr std::uint16_t kAt = 14;  ///< of a frame's number

/// A frame holds its number twice, the second time inverted at its end.
void write_frame(rte_mbuf* mbuf, std::uint64_t number) {
  const auto length = static_cast<std::uint16_t>(60 + number % 200);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(mbuf, length));
  std::memset(bytes, 0xff, 12);
  bytes[12] = bytes[13] = 0x7f;
  std::memcpy(bytes + kAt, &number, sizeof number);
  const std::uint64_t inverted = ~number;
  std::memcpy(bytes + length - sizeof inverted, &inverted, sizeof inverted);
}

bool is_right(const rte_mbuf* mbuf) {
  const auto* const bytes = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
  std::uint64_t number;
  std::uint64_t inverted;
  std::memcpy(&number, bytes + kAt, sizeof number);
  if (mbuf->data_len != 60 + number % 200 || mbuf->nb_segs != 1 || mbuf->next != nullptr) return false;
  std::memcpy(&inverted, bytes + mbuf->data_len - sizeof inverted, sizeof inverted);
  return rte_mbuf_refcnt_read(mbuf) == 1 && inverted == ~number;
}

}  // namespace

Epoch draw_epoch(Random& random) {
  const auto any = [&](auto... values) {
    const std::uint16_t all[] = {static_cast<std::uint16_t>(values)...};
    return all[random.below(sizeof...(values))];
  };
  Epoch epoch;
  epoch.way = static_cast<memory::RecycleWay>(any(0, 1, 2, 3, 3, 4, 4, 4));
  epoch.links = any(0, 1) == 1;
  epoch.pure = epoch.way == memory::RecycleWay::fast_free || any(0, 1, 1) == 0;
  epoch.clones = any(0, 10, 100);
  epoch.port.rx_ring = any(64, 100, 128, 255, 512);
  epoch.port.tx_ring = any(64, 100, 128, 255, 512);
  epoch.port.rx_free_thresh = any(8, 16, 32, 48);
  epoch.port.tx_rs_thresh = any(1, 8, 16, 31);
  epoch.port.tx_free_thresh = any(31, 32);
  constexpr const char* kRefills[] = {"computed", "mbuf", "ring"};
  epoch.devargs = fmt::format("wire=loopback,refill={}", kRefills[any(0, 1, 2)]);
  return epoch;
}

Network::Network(Epoch epoch)
    : epoch_(std::move(epoch)),
      pool_(make_pool("soak", 16383, 128)),
      other_(make_pool("other", 4095, 64)),
      clones_(make_pool("clones", 4095, 64)) {
  for (std::uint16_t i = 0; i < kPorts; ++i) {
    port::Port port = or_throw(port::Port::open(fmt::format("net_vnic{},{}", i, epoch_.devargs)));
    const bool one_pool = epoch_.pure && memory::wants_fast_free(epoch_.way);
    or_throw(port.configure(epoch_.port, {.rx = kQueues, .tx = kQueues, .one_pool = one_pool}));
    or_throw(port.attach(pool_.get()));
    ports_.push_back(std::move(port));
  }
  memory::RecyclePlan plan;
  plan.way = epoch_.way;
  memory::RecycleQueues& lcore = plan.lcores.emplace_back();
  for (std::uint16_t i = 0; i < kPairs; ++i) {
    const port::PortQueue queue{ports_[i / kQueues].id(), static_cast<std::uint16_t>(i % kQueues)};
    lcore.rx.push_back(queue);
    lcore.tx.push_back(queue);
  }
  if (epoch_.links) {
    for (std::size_t i = 0; i < kPairs; ++i) plan.links.push_back({lcore.rx[i], lcore.tx[(i + kQueues) % kPairs]});
  }
  recycling_ = memory::set_up_recycling(plan);
  for (port::Port& port : ports_) or_throw(port.start());
}

bool Network::close() {
  ports_.clear();
  return pool_.in_use() == 0 && other_.in_use() == 0 && clones_.in_use() == 0;
}

void Driver::run() {
  while (!stop_.load(std::memory_order_relaxed)) round();
  for (std::size_t tx = 0; tx < kPairs; ++tx) flush(tx);
  for (rte_mbuf*& mbuf : held_) rte_pktmbuf_free(std::exchange(mbuf, nullptr));
}

void Driver::use(std::uint32_t rx, std::uint32_t tx) {
  rx_wanted_.store(rx, std::memory_order_release);
  tx_wanted_.store(tx, std::memory_order_release);
  // Two rounds: the one under way may have begun before.
  const std::uint64_t before = rounds_.load(std::memory_order_acquire);
  while (rounds_.load(std::memory_order_acquire) < before + 2) std::this_thread::yield();
}

void Driver::round() {
  rx_used_ = rx_wanted_.load(std::memory_order_acquire);
  tx_used_ = tx_wanted_.load(std::memory_order_acquire);
  if (random_.below(1000) == 0) change_routes();
  const std::uint64_t before = packets_.get();
  for (std::size_t rx = 0; rx < kPairs; ++rx) receive(rx);
  if (packets_.get() - before < kBurst) inject();
  rounds_.fetch_add(1, std::memory_order_release);
  if (packets_.get() == before) std::this_thread::yield();
}

void Driver::change_routes() {
  const bool scattered = random_.below(4) == 0;
  const std::size_t one = random_.below(kPairs);
  for (std::size_t& route : routes_) route = scattered ? random_.below(kPairs) : one;
  if (random_.below(3) == 0) routes_.back() = random_.below(kPairs);
}

void Driver::receive(std::size_t rx) {
  memory::Recycler* const recycler = network_.recycler();
  // It knows by itself what is out of use: that is what is tested.
  if (recycler != nullptr) recycler->poll(rx);
  if ((rx_used_ >> rx & 1) == 0) return;
  rte_mbuf* mbufs[kBurst];
  const auto port = network_.port(static_cast<std::uint16_t>(rx / kQueues));
  const std::uint16_t count = rte_eth_rx_burst(port, rx % kQueues, mbufs, kBurst);
  if (count == 0) return;
  packets_.add(count);
  for (std::uint16_t i = 0; i < count; ++i) {
    if (!is_right(mbufs[i])) wrong_.add(1);
    pass_on(mbufs[i]);
  }
  for (std::size_t tx = 0; tx < kPairs; ++tx) {
    const std::uint16_t left = out_[tx].count;
    flush(tx);
    if (left != 0 && recycler != nullptr && recycler->watches()) recycler->left(rx, tx, left);
  }
}

void Driver::pass_on(rte_mbuf* mbuf) {
  if (random_.below(128) == 0) return rte_pktmbuf_free(mbuf);
  if (!network_.epoch().pure && random_.below(1024) < network_.epoch().clones) {
    if (random_.below(2) == 0) {
      hold(mbuf);
    } else if (rte_mbuf* const clone = rte_pktmbuf_clone(mbuf, network_.clone_pool()); clone != nullptr) {
      add(route(), clone);
    }
  }
  add(route(), mbuf);
}

void Driver::add(std::size_t tx, rte_mbuf* mbuf) {
  Batch& batch = out_[tx];
  if (batch.count == batch.mbufs.size()) flush(tx);
  batch.mbufs[batch.count++] = mbuf;
}

void Driver::flush(std::size_t tx) {
  Batch& batch = out_[tx];
  if (batch.count == 0) return;
  std::uint16_t sent = 0;
  if ((tx_used_ >> tx & 1) != 0) {
    const auto port = network_.port(static_cast<std::uint16_t>(tx / kQueues));
    sent = rte_eth_tx_burst(port, tx % kQueues, batch.mbufs.data(), batch.count);
  }
  for (; sent < batch.count; ++sent) rte_pktmbuf_free(batch.mbufs[sent]);
  batch.count = 0;
}

void Driver::inject() {
  const bool foreign = !network_.epoch().pure && random_.below(4) == 0;
  for (std::uint16_t i = 0; i < kBurst; ++i) {
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(foreign ? network_.other_pool() : network_.pool());
    if (mbuf == nullptr) break;
    write_frame(mbuf, next_number_++);
    add(route(), mbuf);
  }
  for (std::size_t tx = 0; tx < kPairs; ++tx) flush(tx);
}

/// Somebody else has it too for a while.
void Driver::hold(rte_mbuf* mbuf) {
  rte_mbuf_refcnt_update(mbuf, 1);
  rte_pktmbuf_free(std::exchange(held_[next_held_], mbuf));
  next_held_ = (next_held_ + 1) % kHeld;
}

}  // namespace warpline::soak
