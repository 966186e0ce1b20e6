// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "warpline/stream/internal/receiver_core.h"

namespace warpline::stream {

void ReceiverCore::submit_burst(Nanos now) {
  // What the lane learns is how things stand when the order leaves. So one that is too late does no harm, and a
  // connection that came and went in between is none.
  const auto fill_change = [this](std::uint32_t index, ConnectionChange& change) {
    Connection& connection = table_[index];
    connection.at_lane |= is_the_lanes(connection);
    const ReceiveState& state = connection.receive;
    change = {.connection = index,
              .generation = connection.generation,
              .add = is_the_lanes(connection),
              .clear = !connection.on_board || connection.consumed_all,
              .state = connection.state,
              .timestamps = state.timestamps,
              .initial = state.initial,
              .acknowledgement = state.newest_acknowledgement,
              .timestamp = state.timestamp,
              .window_end = state.window_end,
              .last_heard = connection.last_heard,
              .key = connection.key,
              .peer = connection.peer};
  };
  const auto fill_tell = [this](std::uint32_t index, WindowTell& tell) {
    const Connection& connection = table_[index];
    if (!is_the_lanes(connection)) return false;
    const ReceiveState& state = connection.receive;
    tell = {index, connection.generation, state.window_end, state.acknowledged, connection.peer.announced};
    return true;
  };
  if (queues_) {
    queues_->submit(now, fill_change, fill_tell);
  } else {
    bursts_->submit(now, fill_change, fill_tell);
  }
}

bool ReceiverCore::collect(OtherFrames* others, Nanos now) {
  const bool any = queues_ ? collect_released(others, now) : collect_bursts(others, now);
  if (any) acknowledge_touched(now);
  if (settings_.consumers) take_releases();
  return any;
}

bool ReceiverCore::collect_bursts(OtherFrames* others, Nanos now) {
  bool any = false;
  while (bursts_->is_done()) {
    take_burst(bursts_->begin_oldest(), others, now);
    bursts_->end_oldest();
    any = true;
  }
  return any;
}

const std::optional<Error>& ReceiverCore::lane_failure(Nanos now) {
  if (!lane_failure_) lane_failure_ = link_->lane().failure();
  if (!lane_failure_ && watch_.hangs(link_->waiting(), now)) {
    lane_failure_ =
        environment_error("a lane of streams",
                          fmt::format("{} wait and none was done for {} ms: it hangs", queues_ ? "frames" : "bursts",
                                      settings_.lane_patience.value / 1'000'000),
                          "see what keeps its GPU or core busy, or give it more time with --watchdog");
  }
  return lane_failure_;
}

void ReceiverCore::stop_lane() {
  const std::uint64_t frames = link_->stop(lane_failure_ ? Nanos{0} : settings_.lane_patience);
  counters_.dispositions[static_cast<std::size_t>(Disposition::lane_ended)].add(frames);
}

/// What became of segments first, then the frames that are the host's: a reset behind bytes finds them there.
void ReceiverCore::take_burst(const BurstLink::DoneBurst& burst, OtherFrames* others, Nanos now) {
  if (settings_.consumers) {
    for (std::uint32_t i = 0; i < burst.slot.order->changes; ++i) let_go(burst.slot.changes[i]);
  }
  const BurstResult& result = *burst.slot.result;
  for (std::size_t i = 0; i < kDispositions; ++i) {
    if (result.dispositions[i] != 0) counters_.dispositions[i].add(result.dispositions[i]);
  }
  counters_.bytes.add(result.bytes);
  counters_.bursts.record(static_cast<std::uint64_t>(now.value - burst.slot.order->now.value));
  const std::uint32_t records = std::min(result.records, burst.count);
  for (std::uint32_t i = 0; i < records; ++i) take_record(burst.slot.records[i], burst, now);
  for (std::uint32_t i = 0; i < burst.count; ++i) {
    const std::uint8_t outcome = burst.slot.outcomes[i];
    if (outcome == kForHost) [[unlikely]] {
      take_left(burst, i, others, now);
    } else if (outcome != kGoesOn) {
      link_->give_back(burst.tokens[i]);
    }
  }
}

/// Takes in how the lane's connection stands. Null if it is none of here any more.
Connection* ReceiverCore::take_state(const ConnectionRecord& record, Nanos heard, Nanos now) {
  if (record.connection >= table_.capacity()) return nullptr;
  Connection& connection = table_[record.connection];
  // The lane may have taken segments of a connection that has ended here meanwhile, and of the one before it.
  const bool known = connection.generation == record.generation &&
                     (connection.phase == Phase::established || connection.phase == Phase::last_ack);
  if (!known) return nullptr;
  ReceiveState& state = connection.receive;
  const ReceiveState& lanes = record.state;
  const ReceiveState::Reach before = state.reach();
  // What acknowledgements and windows the peer was told of is known here; what came, there.
  state.next = lanes.next;
  state.end = lanes.end;
  state.end_reached = lanes.end_reached;
  state.timestamp = lanes.timestamp;
  state.largest = lanes.largest;
  state.acknowledge_now |= lanes.acknowledge_now;
  state.pushed |= lanes.pushed;
  if (state.duplicate.empty()) state.duplicate = lanes.duplicate;
  std::copy(std::begin(lanes.recent), std::end(lanes.recent), std::begin(state.recent));
  std::memcpy(static_cast<void*>(&state.ranges), &lanes.ranges, ReceivedRanges::bytes(lanes.ranges.count()));
  note(connection, record.notes, before, heard, now);
  return &connection;
}

void ReceiverCore::take_record(const ConnectionRecord& record, const BurstLink::DoneBurst& burst, Nanos now) {
  Connection* const connection = take_state(record, burst.slot.order->now, now);
  if (connection == nullptr) return;
  // What the lane wrote is what the peer is told, unless the lane did not know yet of what it was told last, or it is
  // to be told more.
  const bool newest = is_the_lanes(*connection) && burst.sequence >= connection->replied_in;
  const bool enough = connection->written || !connection->wants_reply;
  connection->written = record.written && newest && enough;
  if (connection->written) written_[record.connection] = record.reply;
  if (connection->released > connection->consumed) apply_release(*connection);
}

/// What consumers have said since the last time.
void ReceiverCore::take_releases() {
  link_->board().take([this](std::uint32_t place, ReleaseWord word) {
    Connection& connection = table_[place];
    if (connection.on_board && word.is_of(connection.generation)) take_release(connection, word);
  });
}

void ReceiverCore::take_release(Connection& connection, ReleaseWord word) {
  // No consumer has seen more bytes than a ring has: a word that says so is none.
  const std::uint64_t more = word.since(connection.released);
  if (more > settings_.ring_bytes) return;
  connection.released += more;
  apply_release(connection);
  if (!word.finished() || connection.consumed_all) return;
  connection.consumed_all = true;
  // Consumers learn of the end from the lane, too: told of it now, the application would reset who has ended well.
  connection.end_awaited = word.saw_end() && connection.state == ConnectionState::open;
  if (!connection.end_awaited) want_event(connection);
  if (!is_the_lanes(connection)) change_lane(connection);  // its name goes from the board
}

/// Consumers learn of bytes from the lane, before they are known of here: no byte is given back that is not.
void ReceiverCore::apply_release(Connection& connection) {
  const std::uint64_t to = std::min(connection.released, connection.receive.next);
  if (to > connection.consumed) consume(connection, to - connection.consumed);
}

/// The lane has carried out that change. If it took the connection's name from the board, the place is a new one's.
void ReceiverCore::let_go(const ConnectionChange& change) {
  Connection& connection = table_[change.connection];
  const bool gone = !change.add && change.clear && connection.on_board && connection.generation == change.generation;
  if (!gone) return;
  connection.on_board = false;
  store_release(&link_->board().released[change.connection], 0);
  if (connection.phase == Phase::leaving) table_.release(connection);
}

void ReceiverCore::take_left(const BurstLink::DoneBurst& burst, std::uint32_t i, OtherFrames* others, Nanos now) {
  const FrameRef frame = frame_at(burst.slot.segments + i);
  void* const token = burst.tokens[i];
  if (others != nullptr && others->take(frame, token)) return;
  if (const Outcome outcome = take(frame, BurstLink::checksums_right(burst.slot, i), now)) {
    count(*outcome);
    link_->give_back(token);
  } else {
    bursts_->add_again(i);
  }
}

}  // namespace warpline::stream
