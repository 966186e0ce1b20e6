// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vnic/common/copy_bytes.h"
#include "vnic/common/payload_memory.h"

namespace warpline::vnic {

/// What the device knows of a frame on its way to a receive queue.
struct FrameInfo {
  std::uint64_t release_nanos;  ///< device time from which it may be received
  std::uint32_t length;         ///< bytes, without FCS
  std::uint32_t hash;
  std::uint32_t mark;
  std::uint32_t header_length;  ///< L2 to L4: where a split at headers cuts
  std::uint64_t rx_flags;       ///< bits of enum RxFlag: checksums, hash, mark
};
static_assert(sizeof(FrameInfo) == 32);

/// The device's memory for frames on their way to one receive queue: a first-in-first-out of whole frames in a ring of
/// bytes. One producer at a time (the holder of the sender's egress lock), one consumer (who runs the queue's engine).
/// Lock-free between the two; allocates at set-up only.
///
/// Frames lie one behind the other, each in one piece: the last of a lap runs over the end into room kept there, and
/// the next one begins the ring anew. A producer that finds the ring empty begins it anew too, so that a queue that
/// keeps up stays within few kilobytes, and those in the nearest cache.
class PacketBuffer {
 public:
  static constexpr std::uint32_t kMaxFrame = 65535;

  /// `bytes` is rounded up to a multiple of 64.
  explicit PacketBuffer(std::size_t bytes);

  /// What a frame of `length` bytes takes of the buffer.
  [[nodiscard]] static constexpr std::uint64_t record_bytes(std::uint32_t length) {
    return kFrameAt + ((std::uint64_t{length} + 63) & ~std::uint64_t{63});
  }

  // ---- producer

  /// Appends the frame. False, and nothing happens, when it does not fit.
  bool push(const FrameInfo& info, const std::uint8_t* frame) {
    std::uint8_t* const room = reserve(info);
    if (room == nullptr) return false;
    copy_bytes(room, frame, info.length);
    commit();
    return true;
  }

  /// Room for a frame of info.length bytes, contiguous, to be filled in place; null when it does not fit. Ends with
  /// commit(), or with another reserve(), which takes it back.
  [[nodiscard]] std::uint8_t* reserve(const FrameInfo& info) {
    const std::uint64_t need = record_bytes(info.length);
    if (write_bytes_ + need - seen_read_ > size_ && !has_room(need)) [[unlikely]]
      return nullptr;
    if (write_at_ >= look_at_) [[unlikely]]
      begin_anew_if_empty();
    if (info.length > kMaxFrame) [[unlikely]]
      return nullptr;
    std::uint8_t* const record = bytes() + write_at_;
    std::memcpy(record, &info, sizeof(info));
    reserved_ = need;
    return record + kFrameAt;
  }

  /// Hands the reserved frame to the consumer (release).
  void commit() {
    write_bytes_ += reserved_;
    write_at_ += reserved_;
    if (write_at_ >= size_) begin_anew();
    pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    written_.store(write_bytes_, std::memory_order_release);
  }

  // ---- consumer

  struct Front {
    const FrameInfo* info;  ///< null: there is none
    const std::uint8_t* frame;
  };
  /// The oldest frame that was not taken yet (acquire).
  [[nodiscard]] Front front() {
    if (read_bytes_ == seen_written_) {
      seen_written_ = written_.load(std::memory_order_acquire);
      if (read_bytes_ == seen_written_) return {nullptr, nullptr};
      // Begun anew: only while empty, so it is always here that the consumer comes to it.
      if (anew_from_.load(std::memory_order_relaxed) == read_bytes_) read_at_ = 0;
    }
    const std::uint8_t* const record = bytes() + read_at_;
    return {reinterpret_cast<const FrameInfo*>(record), record + kFrameAt};
  }
  /// Goes on to the next frame; the bytes of this one stay until give_back(). Only after a front() that was there.
  void take() {
    const std::uint64_t record = record_bytes(reinterpret_cast<const FrameInfo*>(bytes() + read_at_)->length);
    read_bytes_ += record;
    read_at_ += record;
    if (read_at_ >= size_) read_at_ = 0;
    taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Hands the room of all frames taken to the producer (release).
  void give_back() { give_back(read_bytes_); }
  /// Hands over the room of the frames that were taken while taken_bytes() was less than `taken`.
  void give_back(std::uint64_t taken) { read_.store(taken, std::memory_order_release); }
  /// Free-running.
  [[nodiscard]] std::uint64_t taken_bytes() const { return read_bytes_; }
  void pop() {
    take();
    give_back();
  }

  /// Drops everything. While neither side runs.
  void clear();

  /// Frames pushed and not taken; recent, not exact.
  [[nodiscard]] std::uint64_t frames() const;

  /// All memory that frames may lie in.
  [[nodiscard]] std::span<std::uint8_t> memory() const { return memory_.bytes(); }

 private:
  static constexpr std::uint64_t kFrameAt = 64;  ///< in its record: copies of whole cache lines cost half
  /// A producer looks whether the ring is empty only so often, as looking costs it the consumer's cache line.
  static constexpr std::uint64_t kLookEvery = 16 * 1024;

  [[nodiscard]] std::uint8_t* bytes() const { return memory_.data(); }
  [[nodiscard]] bool has_room(std::uint64_t need);
  void begin_anew_if_empty();
  void begin_anew() {
    write_at_ = 0;
    look_at_ = kLookEvery;
  }

  // Set at set-up.
  std::uint64_t size_;
  PayloadMemory memory_;  ///< `size_` bytes and room for one more record

  // The producer's. Counts of bytes are free-running and of records only; places are offsets into the ring.
  alignas(64) std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> anew_from_{~std::uint64_t{0}};  ///< count at which it last began anew while empty
  std::atomic<std::uint64_t> pushed_{0};
  std::uint64_t write_bytes_ = 0;
  std::uint64_t write_at_ = 0;
  std::uint64_t look_at_ = kLookEvery;
  std::uint64_t reserved_ = 0;
  std::uint64_t seen_read_ = 0;

  // The consumer's.
  alignas(64) std::atomic<std::uint64_t> read_{0};
  std::atomic<std::uint64_t> taken_{0};
  std::uint64_t read_bytes_ = 0;
  std::uint64_t read_at_ = 0;
  std::uint64_t seen_written_ = 0;
};

}  // namespace warpline::vnic
