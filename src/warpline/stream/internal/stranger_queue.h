// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "warpline/base/units.h"
#include "warpline/stream/internal/reply.h"
#include "warpline/stream/internal/segment_reading.h"

namespace warpline::stream {

/// Replies that belong to no connection and wait to be sent: resets, and the answers of cookies. One thread; memory is
/// taken by the constructor.
class StrangerQueue {
 public:
  /// Has room for `capacity` answers to segments, and `own` resets of connections that the application aborts.
  StrangerQueue(std::size_t capacity, std::uint32_t a_second, Nanos now, std::size_t own = 0)
      : replies_(capacity + own), capacity_(capacity), a_second_(a_second), since_(now) {}

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
  /// Adds an answer to a segment. Returns false, and the reply is dropped, if there is no room.
  [[nodiscard]] bool push(const Reply& reply) { return size_ < capacity_ && push_own(reply); }
  /// Adds a reset that the application caused, also into the room that answers to segments do not take. Returns false,
  /// and the reply is dropped, if there is no room.
  [[nodiscard]] bool push_own(const Reply& reply) {
    if (size_ == replies_.size()) return false;
    replies_[(first_ + size_++) % replies_.size()] = reply;
    return true;
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns the oldest; until the next call. Not if empty().
  [[nodiscard]] const Reply& pop() {
    const Reply& reply = replies_[first_];
    first_ = (first_ + 1) % replies_.size();
    --size_;
    return reply;
  }

 private:
  std::vector<Reply> replies_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t capacity_;
  std::uint32_t a_second_;
  Nanos since_;
  std::uint32_t answered_ = 0;
};

/// Returns the reset of a segment that has no connection (RFC 9293, 3.5.2, group 1).
[[nodiscard]] inline Reply reset_of(const SegmentReading& segment, const MacAddress& to, const MacAddress& from) {
  Reply answer = reply_to(segment.key, to, from);
  if ((segment.flags & packet::kTcpAck) != 0) {
    answer.tcp.sequence = segment.acknowledgement;
    answer.tcp.flags = packet::kTcpRst;
    return answer;
  }
  const std::uint32_t numbers =
      ((segment.flags & packet::kTcpSyn) != 0 ? 1U : 0U) + ((segment.flags & packet::kTcpFin) != 0 ? 1U : 0U);
  answer.tcp.acknowledgement = segment.sequence + segment.payload_length + numbers;
  answer.tcp.flags = packet::kTcpRst | packet::kTcpAck;
  return answer;
}

}  // namespace warpline::stream
