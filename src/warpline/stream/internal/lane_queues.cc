// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "warpline/stream/internal/receiver_core.h"

namespace warpline::stream {

bool ReceiverCore::collect_released(OtherFrames* others, Nanos now) {
  const bool rounds = take_rounds(now);
  const std::uint32_t frames =
      queues_->take_released([&](const queues::PacketQueues::Released& frame) { take_released(frame, others, now); });
  return rounds || frames != 0;
}

bool ReceiverCore::take_rounds(Nanos now) {
  bool any = false;
  for (; queues_->has_round(); any = true) {
    const QueueLink::Round round = queues_->begin_round([this](const ConnectionChange& change) {
      if (settings_.consumers) let_go(change);
    });
    counters_.bytes.add(round.result->bytes);
    const std::uint32_t records = std::min(round.result->records, queues_->lane().view().shape.burst);
    for (std::uint32_t i = 0; i < records; ++i) take_record(round.records[i], round.result->now, now);
    queues_->end_round();
  }
  return any;
}

void ReceiverCore::take_record(const ConnectionRecord& record, Nanos heard, Nanos now) {
  Connection* const connection = take_state(record, heard, now);
  if (connection == nullptr) return;
  if (record.written) {
    // The peer is told. If the lane did not know yet of what it was told by us, it may take its window for closed now.
    const std::uint64_t announced = record.reply.announced;
    connection->receive.count_as_acknowledged();
    note_reply(*connection);
    counters_.lane_acknowledgements.add(1);
    if (announced < connection->peer.announced) want_reply(*connection);
    connection->peer.announced = std::max(connection->peer.announced, announced);
  }
  if (connection->released > connection->consumed) apply_release(*connection);
}

void ReceiverCore::take_released(const queues::PacketQueues::Released& frame, OtherFrames* others, Nanos now) {
  if (frame.stamp != 0) counters_.bursts.record(static_cast<std::uint64_t>(now.value) - frame.stamp);
  const auto outcome = static_cast<std::uint8_t>(frame.worked - 1);
  if (outcome != kForHost || frame.packet == nullptr) {
    // What is no outcome no lane has written; the frame is accounted for all the same.
    count(outcome < kDispositions ? static_cast<Disposition>(outcome) : Disposition::lane_ended);
    if (frame.packet != nullptr) queues_->give_back(frame.packet);
    return;
  }
  // A reset behind bytes finds them here: their round was told of before the slot was released.
  (void)take_rounds(now);
  if (others != nullptr && others->take(queues_->frame_of(frame), frame.packet)) return;
  const FrameRef whole = queues_->frame_of(frame);  // it may have lost a tag
  if (const Outcome became = take(whole, (queues_->marks_of(frame) & kRightMark) != 0, now)) {
    count(*became);
    queues_->give_back(frame.packet);
  } else {
    queues_->add_again(frame);
  }
}

}  // namespace warpline::stream
