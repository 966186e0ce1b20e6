// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpline/base/statistics/counter.h"
#include "warpline/capture/capture_ring.h"
#include "warpline/capture/capture_settings.h"
#include "warpline/capture/packet_filter.h"

namespace warpline::capture {

/// A CaptureSource takes copies of the packets that pass one thread of the data path. That thread calls begin() and
/// end(), which neither wait, lock, allocate nor enter the kernel; counters may be read by any thread, and the thread
/// that writes takes packets out of ring().
class alignas(64) CaptureSource {
 public:
  /// `memory`: bytes that its ring takes. `filter` is of `settings`.
  CaptureSource(const CaptureSettings& settings, const PacketFilter& filter, std::size_t memory)
      : one_in_(settings.what.one_in),
        snaplen_(settings.snaplen),
        filter_(filter),
        ring_(memory, settings.snaplen),
        scratch_(0, settings.snaplen) {}

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
    if (!filter_.matches_all()) return scratch_.free_slot();
    left_out_.add(verdict);
    return nullptr;
  }
  /// Hands over what begin() returned, filled in.
  void end(const CapturedPacket& packet) {
    if (!filter_.matches(packet.bytes(), packet.length, packet.captured)) {
      filtered_.add(1);
    } else if (is_full_) {
      left_out_.add(packet.verdict);
    } else {
      ring_.put();
    }
  }

  [[nodiscard]] CaptureRing& ring() { return ring_; }
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
  CaptureRing ring_;
  CaptureRing scratch_;  ///< never put into: has a slot for what only the filter is to see
  Counter filtered_;
  DropCounters left_out_;
};

}  // namespace warpline::capture
