// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "base/units.h"
#include "message/index_pool.h"
#include "message/packet_window.h"

namespace warpline {

enum class SentState : std::uint8_t {
  in_flight,
  acknowledged,
  lost,    ///< its fragment waits to be sent again
  resent,  ///< lost, and its fragment was sent again or needs not to be
  gone,    ///< never was, or wants no acknowledgement
};

/// A packet that wants to be acknowledged.
struct SentPacket {
  Nanos sent;
  std::uint32_t message = kNone;  ///< index in the pool of messages; kNone: a ping
  std::uint32_t generation = 0;   ///< of the message
  std::uint32_t fragment = 0;
  std::uint16_t bytes = 0;
  SentState state = SentState::gone;
  bool own = false;  ///< of a message begun here: counts against the peer's room
};

struct SentBlock {
  static constexpr std::uint32_t kPackets = 32;
  std::array<SentPacket, kPackets> packets;
  std::uint32_t settled = 0;  ///< bit i: packets[i] is acknowledged or gone
};

/// The packets of one session from floor() to next(), in blocks of a pool that all sessions share. A session with
/// nothing in flight holds no block.
class SentPackets {
 public:
  static constexpr std::uint32_t kSpan = PacketWindow::kSpan;

  SentPackets() { blocks_.fill(kNone); }

  [[nodiscard]] std::uint64_t floor() const { return floor_; }
  [[nodiscard]] std::uint64_t next() const { return next_; }
  [[nodiscard]] std::uint32_t span() const { return static_cast<std::uint32_t>(next_ - floor_); }

  enum class Place : std::uint8_t { ready, no_number, no_block };

  /// Makes a place for next(), if the window leaves `spare` numbers and the pool as many blocks as it must keep: what
  /// is new leaves some to what is sent again, by which both become free.
  [[nodiscard]] Place reserve(IndexPool<SentBlock>& pool, std::uint32_t spare_numbers, std::uint32_t spare_blocks) {
    if (span() + 1 + spare_numbers >= kSpan) return Place::no_number;
    std::uint32_t& block = blocks_[place(next_)];
    if (block != kNone) return Place::ready;
    if (pool.available() <= spare_blocks) return Place::no_block;
    block = pool.take();
    pool[block].settled = 0;
    // Numbers before next_ in a block that was given back meanwhile.
    for (std::uint32_t i = 0; i < next_ % SentBlock::kPackets; ++i) settle(pool[block], i);
    return Place::ready;
  }

  /// The place that reserve() made for next(), which moves on.
  SentPacket& add(IndexPool<SentBlock>& pool) {
    SentPacket& packet = pool[blocks_[place(next_)]].packets[next_ % SentBlock::kPackets];
    ++next_;
    return packet;
  }

  /// A packet without acknowledgement takes next(), for which there is a place unless may_skip().
  std::uint64_t skip(IndexPool<SentBlock>& pool) {
    const std::uint32_t block = blocks_[place(next_)];
    if (block != kNone) {
      settle(pool[block], next_ % SentBlock::kPackets);
    } else if (floor_ == next_) {
      ++floor_;
    }
    return next_++;
  }
  /// Whether skip() needs no place: nothing is waited for.
  [[nodiscard]] bool may_skip() const { return floor_ == next_ && blocks_[place(next_)] == kNone; }

  /// Number in [floor(), next()).
  [[nodiscard]] SentPacket& at(IndexPool<SentBlock>& pool, std::uint64_t number) {
    return pool[blocks_[place(number)]].packets[number % SentBlock::kPackets];
  }

  void settled(IndexPool<SentBlock>& pool, std::uint64_t number, SentState state) {
    SentBlock& block = pool[blocks_[place(number)]];
    block.packets[number % SentBlock::kPackets].state = state;
    block.settled |= 1U << (number % SentBlock::kPackets);
  }

  /// Bits of the 32 packets of which `number` is one that still wait for an acknowledgement.
  [[nodiscard]] std::uint32_t unsettled(IndexPool<SentBlock>& pool, std::uint64_t number) const {
    const std::uint32_t block = blocks_[place(number)];
    return block == kNone ? 0 : ~pool[block].settled;
  }

  /// Moves the floor over all that is settled or, by `let_go(packet)`, not worth waiting for, and gives back blocks.
  template <typename LetGo>
  void raise_floor(IndexPool<SentBlock>& pool, LetGo&& let_go) {
    while (floor_ < next_) {
      const std::uint32_t in_block = floor_ % SentBlock::kPackets;
      SentBlock& block = pool[blocks_[place(floor_)]];
      if ((block.settled >> in_block & 1) == 0 && !let_go(block.packets[in_block])) return;
      ++floor_;
      if (floor_ % SentBlock::kPackets == 0 || floor_ == next_) give(pool, floor_ - 1);
    }
  }

  /// Forgets all packets; numbers go on.
  void clear(IndexPool<SentBlock>& pool) {
    for (std::uint32_t& block : blocks_) {
      if (block != kNone) pool.give(block);
      block = kNone;
    }
    floor_ = next_;
  }

 private:
  static constexpr std::uint32_t kBlocks = 32;  ///< of 32 packets: more than a span that begins inside of one
  [[nodiscard]] static std::uint32_t place(std::uint64_t number) { return number / SentBlock::kPackets % kBlocks; }

  static void settle(SentBlock& block, std::uint32_t i) {
    block.packets[i].state = SentState::gone;
    block.settled |= 1U << i;
  }
  void give(IndexPool<SentBlock>& pool, std::uint64_t number) {
    std::uint32_t& block = blocks_[place(number)];
    if (block != kNone) pool.give(block);
    block = kNone;
  }

  std::uint64_t floor_ = 0;
  std::uint64_t next_ = 0;
  std::array<std::uint32_t, kBlocks> blocks_;
};

}  // namespace warpline
