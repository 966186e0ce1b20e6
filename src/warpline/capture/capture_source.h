// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/capture/packet_filter.h"
#include "warpline/capture/rings/capture_ring.h"

namespace warpline::capture {

/// A CaptureSource takes copies of the packets that pass one thread of the data path. That thread calls begin() and
/// end(), which neither wait, lock, allocate nor enter the kernel; counters may be read by any thread.
class alignas(64) CaptureSource {
 public:
  /// Takes one in `one_in` of the packets, and puts those that the filter matches in `ring`, whose slots are of
  /// `shape`.
  CaptureSource(std::uint32_t one_in, const PacketFilter& filter, const CaptureRingInput& ring, RingShape shape)
      : one_in_(one_in), snaplen_(shape.snaplen), filter_(filter), ring_(ring), scratch_(shape.slot_bytes()) {}

  /// Bytes that are copied of a packet at most.
  [[nodiscard]] std::uint32_t snaplen() const { return snaplen_; }

  /// Returns where to put the facts of a packet with this verdict, and its first bytes; then end() must follow. Null:
  /// it is not among those that are taken, or was counted as left out.
  [[nodiscard]] CapturedPacket* begin(Verdict verdict) {
    if (one_in_ != 1 && ++passed_ % one_in_ != 0) return nullptr;
    CapturedPacket* packet = ring_.free_slot();
    is_full_ = packet == nullptr;
    if (!is_full_) return packet;
    // Only those that the filter matches are left out, so it has to see this one.
    if (!filter_.matches_all()) return new (scratch_.data()) CapturedPacket;
    left_out_.add(verdict);
    return nullptr;
  }
  /// Hands over what begin() returned, filled in.
  void end(const CapturedPacket& packet) {
    // Whoever shares the ring's memory may write to it.
    if (!filter_.matches(packet.bytes(), packet.length, std::min(packet.captured, snaplen_))) {
      filtered_.add(1);
    } else if (is_full_) {
      left_out_.add(packet.verdict);
    } else {
      ring_.put();
    }
  }

  /// Packets that found no slot free, by their verdict.
  [[nodiscard]] const DropCounters& left_out() const { return left_out_; }
  /// Packets that the filter did not match.
  [[nodiscard]] std::uint64_t filtered() const { return filtered_.get(); }

 private:
  std::uint32_t one_in_;
  std::uint32_t snaplen_;
  std::uint64_t passed_ = 0;
  bool is_full_ = false;
  PacketFilter filter_;
  CaptureRingInput ring_;
  std::vector<std::byte> scratch_;  ///< a slot for what only the filter is to see
  Counter filtered_;
  DropCounters left_out_;
};

}  // namespace warpline::capture
