// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vnic/engine/hardware.h"

namespace warpline::vnic {

using Bytes = std::vector<std::uint8_t>;

/// A frame of `length` bytes that all depend on `number`, to no particular address.
inline Bytes numbered_frame(std::uint64_t number, std::uint32_t length) {
  Bytes frame(length);
  for (std::uint32_t i = 0; i < length; ++i) frame[i] = static_cast<std::uint8_t>(mix64(number * 65536 + i));
  for (std::uint32_t i = 0; i < 6 && i < length; ++i) frame[i] = 0xff;
  return frame;
}

/// A port without a driver: the test itself posts and takes back descriptors, one queue pair.
class TestPort {
 public:
  static constexpr std::uint32_t kSlot = 16384;  ///< bytes of a descriptor's buffer at most

  explicit TestPort(const Devargs& args = {}, std::uint16_t size = 64, std::vector<std::uint16_t> rooms = {2048},
                    const rte_net_vnic_copy_engine* copies = nullptr)
      : hardware("net_vnic_test", args), rx_(std::make_unique<RxQueue>()), tx_(std::make_unique<TxQueue>()) {
    rx_ring_.resize(size);
    tx_ring_.resize(size);
    rx_memory_.resize(std::size_t{size} * kSlot);
    tx_memory_.resize(std::size_t{size} * kSlot);
    open_status = hardware.engine.open();
    rx_->hardware = tx_->hardware = &hardware;
    rx_->ring = rx_ring_.data();
    tx_->ring = tx_ring_.data();
    rx_->size = static_cast<std::uint16_t>(size - size % rooms.size());
    tx_->size = size;
    rx_->group = static_cast<std::uint16_t>(rooms.size());
    rx_->free_thresh = 32;
    for (std::size_t i = 0; i < rooms.size(); ++i) rx_->room[i] = rooms[i];
    hardware.rx_queues = hardware.tx_queues = 1;
    hardware.iommu.map(reinterpret_cast<std::uintptr_t>(rx_memory_.data()), rx_memory_.size());
    hardware.iommu.map(reinterpret_cast<std::uintptr_t>(tx_memory_.data()), tx_memory_.size());
    if (hardware.ingress.configure(1, args.buffer) != 0) open_status = -1;
    hardware.ingress.max_frame = kMaxFrame;
    hardware.ingress.queue_started[0] = true;
    hardware.ingress.started = true;
    hardware.link.up = true;
    if (args.wire == WireKind::loopback) hardware.egress.connect(&hardware.ingress);
    if (copies != nullptr && hardware.engine.set_copy_engine(copies) != 0) open_status = -1;
    if (hardware.engine.reset(*rx_) != 0 || hardware.engine.reset(*tx_) != 0) open_status = -1;
    rx_->started = true;
    tx_->started = true;
  }

  [[nodiscard]] RxQueue& rx() { return *rx_; }
  [[nodiscard]] TxQueue& tx() { return *tx_; }
  [[nodiscard]] std::uint8_t* tx_buffer(std::uint32_t i) { return tx_memory_.data() + std::size_t{i} * kSlot; }

  /// Writes a frame's descriptors, cut into `pieces`, and posts them with the next doorbell().
  void post(const Bytes& frame, std::uint32_t pieces = 1, std::uint64_t flags = 0, std::uint8_t l2 = 0,
            std::uint16_t l3 = 0) {
    std::size_t from = 0;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const std::size_t length = i + 1 == pieces ? frame.size() - from : frame.size() / pieces;
      const std::uint32_t at = tx_sent_ % tx_->size;
      if (length != 0) std::memcpy(tx_buffer(at), frame.data() + from, length);
      const std::uint64_t word = flags | (i + 1 == pieces ? std::uint64_t{kTxEnd} : 0);
      tx_ring_[at] = {reinterpret_cast<std::uintptr_t>(tx_buffer(at)),
                      tx_word(static_cast<std::uint16_t>(length), l2, l3, word)};
      from += length;
      ++tx_sent_;
    }
  }
  void post_raw(std::uint64_t address, std::uint64_t word) { tx_ring_[tx_sent_++ % tx_->size] = {address, word}; }
  void doorbell() { tx_->posted.store(tx_sent_, std::memory_order_release); }
  std::uint32_t send(const Bytes& frame) {
    post(frame);
    doorbell();
    return hardware.engine.serve_tx(*tx_);
  }
  [[nodiscard]] bool reported(std::uint32_t place) {
    return (read_back(tx_ring_[place % tx_->size].word) & kTxDone) != 0;
  }

  /// Posts receive buffers until all are, or `most` more.
  void refill(std::uint32_t most = 0xffffffff) {
    for (; most != 0 && rx_posted_ - harvested_ < rx_->size; --most, ++rx_posted_) {
      const std::uint32_t at = rx_posted_ % rx_->size;
      rx_ring_[at] = {reinterpret_cast<std::uintptr_t>(rx_memory_.data() + std::size_t{at} * kSlot),
                      rx_->room[at % rx_->group]};
    }
    rx_->posted.store(rx_posted_, std::memory_order_release);
  }

  struct Received {
    Bytes bytes;
    std::vector<std::uint32_t> lengths;  ///< of its buffers
    std::uint64_t hash_and_mark = 0;
    std::uint64_t word = 0;  ///< of its last buffer
  };
  /// Takes back the oldest frame that is written back whole.
  std::optional<Received> harvest() {
    Received frame;
    for (std::uint32_t i = harvested_; i != rx_posted_; ++i) {
      const std::uint32_t at = i % rx_->size;
      const std::uint64_t word = read_back(rx_ring_[at].word);
      if ((word & kRxDone) == 0) return {};
      const std::uint8_t* const from = rx_memory_.data() + std::size_t{at} * kSlot;
      frame.bytes.insert(frame.bytes.end(), from, from + rx_length(word));
      frame.lengths.push_back(rx_length(word));
      frame.hash_and_mark = rx_ring_[at].address;
      frame.word = word;
      if ((word & kRxEnd) == 0) continue;
      harvested_ = i + 1;
      return frame;
    }
    return {};
  }
  std::uint32_t receive(std::uint32_t most = 64) { return hardware.engine.serve_rx(*rx_, most); }

  [[nodiscard]] std::uint64_t count(Count what) const {
    return rx_->device_counts.get(what) + tx_->device_counts.get(what) + hardware.egress.counts.get(what) +
           hardware.ingress.counts.get(what);
  }

  Hardware hardware;
  int open_status = 0;

 private:
  std::unique_ptr<RxQueue> rx_;
  std::unique_ptr<TxQueue> tx_;
  std::vector<RxDescriptor> rx_ring_;
  std::vector<TxDescriptor> tx_ring_;
  Bytes rx_memory_;
  Bytes tx_memory_;
  std::uint32_t tx_sent_ = 0;
  std::uint32_t rx_posted_ = 0;
  std::uint32_t harvested_ = 0;
};

}  // namespace warpline::vnic
