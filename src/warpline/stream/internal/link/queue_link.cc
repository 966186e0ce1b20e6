// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/link/queue_link.h"

#include <algorithm>
#include <array>
#include <utility>

namespace warpline::stream {

QueueLink::QueueLink(std::unique_ptr<SegmentLane> lane) : LaneLink(std::move(lane)), queues_(lane_->queues()) {
  store_release(&lane_->view().taken->value, round_);
}

void QueueLink::begin() {
  if (!std::exchange(begun_, true)) lane_->submit(1);
}

void QueueLink::send_order() {
  begin();
  store_release(&lane_->view().ready[place_of(order_)].value, order_ << 32);
  ++order_;
}

/// Frames that are to be taken again come behind those that are posted already, and before all others.
void QueueLink::publish(Nanos now) {
  while (has_again()) {
    const std::uint32_t pieces = next_one_again().segment.more + 1U;
    if (queues_->room(pieces, shape_.queue_slots) < pieces) break;
    std::array<Segment, kMaxSegments> segments;
    const Again first = pop_again();
    segments[0] = first.segment;
    for (std::uint32_t i = 1; i < pieces; ++i) segments[i] = pop_again().segment;
    queues_->post(first.token, std::span(segments).first(pieces), Verdict::forward, first.marks);
  }
  if (held_ != 0) begin();
  queues_->publish(static_cast<std::uint64_t>(now.value));
}

std::uint32_t QueueLink::take_posted(std::span<PostedFrame> frames) {
  constexpr std::size_t kMost = 64;
  std::array<void*, kMost> tokens;
  std::array<std::uint32_t, kMost> lengths;
  const auto most = static_cast<std::uint32_t>(std::min(frames.size(), kMost));
  const std::uint32_t count = queues_->take_sent(tokens.data(), most, lengths.data());
  for (std::uint32_t i = 0; i < count; ++i) frames[i] = {tokens[i], lengths[i]};
  if (count != 0) queues_->complete();
  return count;
}

std::uint64_t QueueLink::waiting() const {
  const queues::PacketQueues::Waiting frames = queues_->waiting();
  return frames.any || order_ != carried_out_ ? frames.sequence + carried_out_ : 0;
}

std::uint64_t QueueLink::stop(Nanos patience) {
  lane_->stop(patience);
  std::uint64_t count = 0;
  while (has_again()) {
    const Again again = pop_again();
    if (again.token == nullptr) continue;
    give_back(again.token);
    ++count;
  }
  queues_->publish(0);  // what the lane has not seen is taken back, too
  queues_->reclaim([&](const queues::PacketQueues::Released& frame) {
    if (frame.packet != nullptr) give_back(frame.packet);
    ++count;
  });
  held_ = 0;
  return count;
}

}  // namespace warpline::stream
