// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "warpline/base/units.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/internal/segment_reading.h"

namespace warpline::stream {

/// Frames that belong to no connection and wait to be sent: resets. One thread; memory is taken by the constructor.
class StrangerQueue {
 public:
  StrangerQueue(std::size_t capacity, std::uint32_t a_second, Nanos now)
      : frames_(capacity), a_second_(a_second), since_(now) {}

  /// Returns false if so many have been answered in this second that one more is not.
  [[nodiscard]] bool may_answer(Nanos now) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    if (now.value - since_.value >= kSecond) {
      since_ = now;
      answered_ = 0;
    }
    if (answered_ == a_second_) return false;
    ++answered_;
    return true;
  }
  /// Returns false, and the frame is dropped, if there is no room.
  [[nodiscard]] bool push(const packet::TcpFrame& frame) {
    if (size_ == frames_.size()) return false;
    frames_[(first_ + size_++) % frames_.size()] = frame;
    return true;
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns the oldest; until the next call. Not if empty().
  [[nodiscard]] const packet::TcpFrame& pop() {
    const packet::TcpFrame& frame = frames_[first_];
    first_ = (first_ + 1) % frames_.size();
    --size_;
    return frame;
  }

 private:
  std::vector<packet::TcpFrame> frames_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::uint32_t a_second_;
  Nanos since_;
  std::uint32_t answered_ = 0;
};

/// Makes `answer`, whose ends are set, the reset of a segment that has no connection (RFC 9293, 3.5.2, group 1).
inline void make_reset(const SegmentReading& segment, packet::TcpFrame& answer) {
  if ((segment.flags & packet::kTcpAck) != 0) {
    answer.tcp.sequence = segment.acknowledgement;
    answer.tcp.flags = packet::kTcpRst;
    return;
  }
  const std::uint32_t numbers =
      ((segment.flags & packet::kTcpSyn) != 0 ? 1U : 0U) + ((segment.flags & packet::kTcpFin) != 0 ? 1U : 0U);
  answer.tcp.acknowledgement = segment.sequence + segment.payload_length + numbers;
  answer.tcp.flags = packet::kTcpRst | packet::kTcpAck;
}

}  // namespace warpline::stream
