// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/checker.h"

#include <algorithm>

#include "warpline/base/time/clock.h"
#include "warpline/traffic/small_bytes.h"

namespace warpline::traffic {

Checker::Checker(const TrafficPlan& plan, const Options& options)
    : plan_(plan), options_(options), swapped_macs_(plan.macs()), nanos_per_tick_(1e9 / ticks_per_second()) {
  streams_.reserve(options.streams);
  for (std::uint16_t i = 0; i < options.streams; ++i) streams_.emplace_back(options.window, plan.flows());
  std::rotate(swapped_macs_.begin(), swapped_macs_.begin() + 6, swapped_macs_.end());
}

inline bool Checker::macs_match(const std::uint8_t* head) const {
  const auto are = [head](const std::array<std::uint8_t, 12>& macs) { return same_bytes(head, macs.data(), 12); };
  return (options_.macs != MacRule::unchanged && are(swapped_macs_)) ||
         (options_.macs != MacRule::swapped && are(plan_.macs()));
}

inline bool Checker::pattern_matches(const rte_mbuf* mbuf, const Stamp& stamp, std::uint32_t length) const {
  const std::uint8_t* pattern = plan_.pattern(stamp);
  std::uint32_t skip = plan_.head_bytes();
  if (mbuf->data_len == length) [[likely]] {
    return same_bytes(rte_pktmbuf_mtod_offset(mbuf, const std::uint8_t*, skip), pattern, length - skip);
  }
  std::uint32_t left = length - skip;
  for (const rte_mbuf* segment = mbuf; segment != nullptr && left != 0; segment = segment->next) {
    if (segment->data_len <= skip) {
      skip -= segment->data_len;
      continue;
    }
    const std::uint32_t take = std::min<std::uint32_t>(segment->data_len - skip, left);
    if (!same_bytes(rte_pktmbuf_mtod_offset(segment, const std::uint8_t*, skip), pattern, take)) return false;
    pattern += take;
    left -= take;
    skip = 0;
  }
  return left == 0;
}

inline Verdict Checker::verify(const rte_mbuf* mbuf, Stamp& stamp, FramePlace& place) const {
  const std::uint32_t head_bytes = plan_.head_bytes();
  std::array<std::uint8_t, sizeof(HeaderTemplate) + kStampBytes> scratch;
  const auto* head = static_cast<const std::uint8_t*>(rte_pktmbuf_read(mbuf, 0, head_bytes, scratch.data()));
  if (head == nullptr) return Verdict::unstamped;
  if (!plan_.read_stamp(head, stamp)) return plan_.looks_ours(head) ? Verdict::corrupt : Verdict::unstamped;
  if (stamp.stream() >= options_.streams || stamp.ticks < options_.started) return Verdict::unstamped;

  const std::uint64_t sequence = stamp.sequence();
  const FramePlace& next = streams_[stamp.stream()].place;
  // Field by field: a copy in one piece would have to wait for the pieces that the last frame stored.
  place = next.sequence == sequence ? FramePlace{sequence, next.flow, next.slot} : plan_.place(sequence);
  const std::uint32_t length = plan_.frame_bytes(place);
  const bool intact = rte_pktmbuf_pkt_len(mbuf) == length && macs_match(head) &&
                      plan_.headers_match(place, stamp, head) && pattern_matches(mbuf, stamp, length);
  return intact ? Verdict::forward : Verdict::corrupt;
}

Verdict Checker::check(const rte_mbuf* mbuf, std::uint64_t ticks) {
  counters_.checked.add(1);
  Stamp stamp;
  FramePlace place;
  if (const Verdict verdict = verify(mbuf, stamp, place); verdict != Verdict::forward) [[unlikely]] {
    // A stranger is no fault of the way; ours, beyond recognition, is missing.
    if (verdict == Verdict::corrupt) counters_.bad.add(1);
    return verdict;
  }
  StreamState& stream = streams_[stamp.stream()];
  switch (stream.window.mark(place.sequence)) {
    case SequenceWindow::Arrival::fresh: {
      counters_.distinct.add(1);
      ++stream.distinct;
      std::uint64_t& end = stream.flow_end[place.flow];
      if (place.sequence < end) {
        counters_.reordered.add(1);
      } else {
        end = place.sequence + 1;
      }
      break;
    }
    case SequenceWindow::Arrival::duplicate:
      counters_.duplicated.add(1);
      return Verdict::duplicate;
    case SequenceWindow::Arrival::late:
      counters_.late.add(1);
      break;
  }
  stream.place = plan_.next(place);
  if (place.sequence >= options_.latency_from) {
    const std::uint64_t took = ticks > stamp.ticks ? ticks - stamp.ticks : 0;
    latency_.record(static_cast<std::uint64_t>(static_cast<double>(took) * nanos_per_tick_));
  }
  return Verdict::forward;
}

}  // namespace warpline::traffic
