// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "vnic/common/payload_memory.h"
#include "vnic/common/spin_lock.h"
#include "vnic/engine/copy_lane.h"
#include "vnic/engine/engine.h"
#include "vnic/engine/hardware.h"
#include "vnic/sources/schedule.h"

namespace warpline::vnic {

/// Frames to send whose bytes a copy engine brings: they lie one behind the other in a ring, each in one piece.
struct Engine::TxCopies {
  static constexpr std::uint32_t kFrames = 2048;
  static constexpr std::uint32_t kAlignment = 64;

  struct Frame {
    std::uint8_t* bytes;
    std::uint32_t length;
    std::uint64_t word;  ///< of the first descriptor
  };

  explicit TxCopies(std::size_t bytes) : memory(bytes), frames(kFrames) {}

  /// Room for the next frame, or null; taken by push().
  [[nodiscard]] std::uint8_t* room(std::uint32_t length) {
    if (end - begin == kFrames) return nullptr;
    // A frame that would run over the ring's end begins it anew.
    const std::uint64_t at = position % memory.size();
    next = at + length > memory.size() ? position + memory.size() - at : position;
    return next + length - landed <= memory.size() ? memory.data() + next % memory.size() : nullptr;
  }
  void push(std::uint8_t* bytes, std::uint32_t length, std::uint64_t word) {
    frames[end++ % kFrames] = {bytes, length, word};
    position = next + (length + kAlignment - 1) / kAlignment * kAlignment;
  }
  /// The oldest frame, which has landed or was lost.
  const Frame& pop() { return frames[begin++ % kFrames]; }

  CopyLane lane;
  PayloadMemory memory;
  std::vector<Frame> frames;
  std::uint64_t begin = 0;  ///< of frames, free-running
  std::uint64_t end = 0;
  std::uint64_t position = 0;  ///< in memory, free-running: behind the last frame
  std::uint64_t landed = 0;    ///< behind the last one that has gone on
  std::uint64_t next = 0;      ///< where room() found it

  SpinLock serving;               ///< held by whoever serves the queue, see look_after_senders()
  std::atomic<bool> busy{false};  ///< it has something to do though nobody sends
};

/// What the device has in hand for a transmit queue. Owner: whoever serves the queue.
struct Engine::TxState {
  Iommu::Cache memory;
  bool skipping = false;  ///< in a chain that is too long, up to its end
  std::unique_ptr<TxCopies> copies;
  alignas(64) std::array<std::uint8_t, 64 * 1024> bytes;  ///< one frame, while its faults and checksums are made
};

/// Frames on their way to the program's buffers.
struct Engine::RxCopies {
  CopyLane lane;
  std::uint16_t land_at = 0;  ///< index of the next descriptor to write back
  std::uint32_t polls = 0;
  // wire=static: frames to be copied over and over, `stride` apart.
  PayloadMemory supply;
  std::uint32_t stride = 0;
  std::uint32_t supplied = 0;  ///< frames there are
  std::uint32_t next = 0;
};

/// The same for a receive queue.
struct Engine::RxState {
  Iommu::Cache memory;
  std::uint64_t now_nanos = 0;  ///< when the clock was read last
  Schedule schedule;            ///< of wire=static with a rate
  std::unique_ptr<RxCopies> copies;
};

/// What is done once a burst at most.
struct Engine::Looks {
  bool made;            ///< frames were made, or there is no source
  bool looked = false;  ///< at the clock
};

inline PacketBuffer::Front Engine::arrived(PacketBuffer& buffer, RxState& state, Looks& looks, std::uint32_t wanted) {
  constexpr PacketBuffer::Front kNone{nullptr, nullptr};
  PacketBuffer::Front front = buffer.front();
  if (front.info == nullptr) {
    if (looks.made) return kNone;
    looks.made = true;
    make_frames(wanted);
    front = buffer.front();
    if (front.info == nullptr) return kNone;
  }
  if (front.info->release_nanos > state.now_nanos) {
    if (looks.looked) return kNone;
    looks.looked = true;
    state.now_nanos = device_nanos();
    if (front.info->release_nanos > state.now_nanos) return kNone;
  }
  return front;
}

/// A frame's descriptors, from the next one to fetch on.
struct Engine::Chain {
  enum class Fate : std::uint8_t { incomplete, whole, malformed, unmapped, endless };
  Fate fate = Fate::incomplete;
  std::uint16_t first = 0;
  std::uint32_t pieces = 0;
  std::uint32_t length = 0;
  std::uint64_t word = 0;  ///< of the first
  std::uint32_t reports = 0;
  std::uint16_t report_at = 0;  ///< the last of them
};

}  // namespace warpline::vnic
