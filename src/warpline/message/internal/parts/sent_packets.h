// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "warpline/base/units.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/internal/parts/packet_window.h"

namespace warpline::message {

/// State of a sent packet that is not settled.
enum class SentState : std::uint8_t {
  in_flight,
  probed,  ///< in flight, and its fragment was sent once more as a probe
  probe,   ///< in flight, and is that probe
  lost,    ///< its fragment waits to be sent again
  resent,  ///< lost, and its fragment was sent again or needs not to be
};

/// What a probe of the path has in place of a fragment's number, and no message.
inline constexpr std::uint32_t kPathProbeFragment = 0xfffffffdU;

/// The same of a go-away.
inline constexpr std::uint32_t kGoAwayFragment = 0xfffffffcU;

/// A packet that wants to be acknowledged.
struct SentPacket {
  Nanos sent;
  std::uint32_t message = kNone;  ///< index in the pool of messages; kNone: a ping, a probe of the path, or a go-away
  std::uint32_t generation = 0;   ///< generation of the message
  std::uint32_t fragment = 0;
  std::uint16_t bytes = 0;  ///< that it counts as in flight
  SentState state = SentState::in_flight;
  bool own : 1 = false;    ///< part of a message begun here: counts against the peer's room
  bool large : 1 = false;  ///< its datagram is longer than Session::base_bytes

  [[nodiscard]] bool in_flight() const { return state <= SentState::probe; }
  [[nodiscard]] bool probes_path() const { return message == kNone && fragment == kPathProbeFragment; }
  [[nodiscard]] bool goes_away() const { return message == kNone && fragment == kGoAwayFragment; }
};

struct SentBlock {
  static constexpr std::uint32_t kPackets = 32;
  std::array<SentPacket, kPackets> packets;
  std::uint32_t settled = 0;  ///< bit i: packets[i] is acknowledged, never was, or wants no acknowledgement
};

/// The blocks of all sessions. Each session has a first block of its own, whatever the others hold: sessions whose
/// peers do not acknowledge anything stop no other session. Further blocks are shared.
class SentBlocks {
 public:
  SentBlocks(std::uint32_t shared, std::uint32_t sessions)
      : blocks_(shared + sessions), shared_(shared), unused_first_(sessions) {}

  /// A block for a session that holds `held` of them, if the shared ones leave `spare`. kNone: they do not.
  [[nodiscard]] std::uint32_t take(std::uint32_t held, std::uint32_t spare) {
    if (held == 0) {
      --unused_first_;
    } else if (available() <= spare) {
      return kNone;
    }
    return blocks_.take();
  }
  /// Takes a block back from a session that holds `left` afterwards.
  void give(std::uint32_t block, std::uint32_t left) {
    if (left == 0) ++unused_first_;
    blocks_.give(block);
  }

  [[nodiscard]] SentBlock& operator[](std::uint32_t index) { return blocks_[index]; }
  /// Shared blocks that are free, and how many there are.
  [[nodiscard]] std::uint32_t available() const { return blocks_.available() - unused_first_; }
  [[nodiscard]] std::uint32_t capacity() const { return shared_; }

 private:
  IndexPool<SentBlock> blocks_;
  std::uint32_t shared_;
  std::uint32_t unused_first_;  ///< sessions that hold no block
};

/// The packets of one session from floor() to next(), in blocks of SentBlocks. A session with nothing in flight
/// holds no block, and packets that want no acknowledgement need none: a number without a block is settled.
class SentPackets {
 public:
  static constexpr std::uint32_t kSpan = PacketWindow::kSpan;
  /// Bytes, the first, that sessions with few packets in flight seldom touch.
  static constexpr std::size_t kSeldomUsed = 128;

  SentPackets() { older_.fill(kNone); }

  [[nodiscard]] std::uint64_t floor() const { return next_ - span_; }
  [[nodiscard]] std::uint64_t next() const { return next_; }
  [[nodiscard]] std::uint32_t span() const { return span_; }

  enum class Place : std::uint8_t { ready, no_number, no_block };

  /// Makes a place for next(), if the window leaves `spare` numbers and the pool as many blocks as it must keep: what
  /// is new leaves some to what is sent again, by which both become free.
  [[nodiscard]] Place reserve(SentBlocks& pool, std::uint32_t spare_numbers, std::uint32_t spare_blocks) {
    if (span() + 1 + spare_numbers >= kSpan) return Place::no_number;
    if (newest_ != kNone) return Place::ready;
    newest_ = pool.take(held_, spare_blocks);
    if (newest_ == kNone) return Place::no_block;
    ++held_;
    // Numbers before next_ were in a block that was given back meanwhile, or in none.
    pool[newest_].settled = (1U << next_ % SentBlock::kPackets) - 1;
    return Place::ready;
  }

  /// The place that reserve() made for next(), which moves on.
  SentPacket& add(SentBlocks& pool) {
    SentPacket& packet = pool[newest_].packets[next_ % SentBlock::kPackets];
    move_on();
    return packet;
  }

  /// A packet without acknowledgement takes next(), if may_skip().
  std::uint64_t skip(SentBlocks& pool) {
    const std::uint64_t number = next_;
    const bool waits = held_ != 0;
    if (newest_ != kNone) pool[newest_].settled |= 1U << number % SentBlock::kPackets;
    move_on();
    if (!waits) span_ = 0;
    return number;
  }
  /// Whether there is a number for skip(): nothing is waited for, or the window leaves `spare_numbers`.
  [[nodiscard]] bool may_skip(std::uint32_t spare_numbers) const {
    return held_ == 0 || span() + 1 + spare_numbers < kSpan;
  }
  /// Blocks that the session holds.
  [[nodiscard]] std::uint32_t held() const { return held_; }

  /// Number in [floor(), next()) that is not settled, or next() after reserve().
  [[nodiscard]] SentPacket& at(SentBlocks& pool, std::uint64_t number) {
    return pool[block_of(number)].packets[number % SentBlock::kPackets];
  }

  void settle(SentBlocks& pool, std::uint64_t number) {
    pool[block_of(number)].settled |= 1U << number % SentBlock::kPackets;
  }

  /// Bits of the 32 packets of which `number` is one that still wait for an acknowledgement.
  [[nodiscard]] std::uint32_t unsettled(SentBlocks& pool, std::uint64_t number) const {
    const std::uint32_t block = block_of(number);
    return block == kNone ? 0 : ~pool[block].settled;
  }

  /// Moves the floor over all that is settled or, by `let_go(packet)`, not worth waiting for, and gives back blocks.
  template <typename LetGo>
  void raise_floor(SentBlocks& pool, LetGo&& let_go) {
    while (span_ != 0) {
      const std::uint64_t first = floor();
      const std::uint32_t in_block = first % SentBlock::kPackets;
      std::uint32_t& index = group(first) == group(next_) ? newest_ : older_[place(first)];
      if (index == kNone) {
        span_ -= std::min<std::uint16_t>(span_, static_cast<std::uint16_t>(SentBlock::kPackets - in_block));
        continue;
      }
      SentBlock& block = pool[index];
      if ((block.settled >> in_block & 1) == 0 && !let_go(block.packets[in_block])) return;
      --span_;
      if (in_block + 1 != SentBlock::kPackets && span_ != 0) continue;
      pool.give(index, --held_);
      index = kNone;
    }
  }

  /// Forgets all packets; numbers go on.
  void clear(SentBlocks& pool) {
    for (std::uint32_t& block : older_) {
      if (block != kNone) pool.give(block, --held_);
      block = kNone;
    }
    if (newest_ != kNone) pool.give(newest_, --held_);
    newest_ = kNone;
    span_ = 0;
  }

 private:
  static constexpr std::uint32_t kBlocks = 32;  ///< blocks of 32 packets; a span that begins inside of one needs fewer
  [[nodiscard]] static std::uint64_t group(std::uint64_t number) { return number / SentBlock::kPackets; }
  [[nodiscard]] static std::uint32_t place(std::uint64_t number) { return group(number) % kBlocks; }
  [[nodiscard]] std::uint32_t block_of(std::uint64_t number) const {
    return group(number) == group(next_) ? newest_ : older_[place(number)];
  }

  void move_on() {
    ++span_;
    if (++next_ % SentBlock::kPackets != 0) return;
    older_[place(next_ - 1)] = newest_;
    newest_ = kNone;
  }

  std::array<std::uint32_t, kBlocks> older_;  ///< blocks by place()
  std::uint64_t next_ = 0;
  std::uint16_t span_ = 0;
  std::uint16_t held_ = 0;        ///< blocks
  std::uint32_t newest_ = kNone;  ///< block of next_
  static_assert(sizeof(older_) == kSeldomUsed);
};

}  // namespace warpline::message
