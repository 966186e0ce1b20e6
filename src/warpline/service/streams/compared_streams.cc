// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/compared_streams.h"

#include <algorithm>
#include <span>
#include <utility>

namespace warpline::service {

using stream::ConnectionState;
using stream::StreamReceiver;
using stream_port::SeededComparer;

ComparedStreams::ComparedStreams(std::uint32_t connections, std::unique_ptr<SeededComparer> comparer,
                                 std::uint64_t chunk)
    : comparer_(std::move(comparer)), chunks_(connections, chunk), places_(connections) {
  waiting_.reserve(connections);
  batch_.reserve(SeededComparer::kMostPieces);
  pieces_.reserve(SeededComparer::kMostPieces);
}

bool ComparedStreams::turn(StreamReceiver& receiver, Nanos now) {
  bool worked = false;
  while (const auto event = receiver.poll()) {
    Place& place = places_[event->connection.index];
    if (!place.known || place.id != event->connection) chunks_.begin(event->connection.index);
    place.id = event->connection;
    place.known = true;
    if (!std::exchange(place.waits, true)) waiting_.push_back(event->connection.index);
    worked = true;
  }
  if (!batch_.empty()) {
    constexpr std::uint32_t kTurnsALook = 1024;
    if (!comparer_->idle()) {
      failed_ = failed_ || (++looks_ % kTurnsALook == 0 && comparer_->failure());
      return worked;
    }
    end_batch(receiver, now);
  }
  if (waiting_.empty()) return worked;
  begin_batch(receiver, now);
  return true;
}

void ComparedStreams::finish() {
  chunks_.finish();
  for (std::uint32_t index = 0; index < places_.size(); ++index) {
    Place& place = places_[index];
    if (place.known && !std::exchange(place.waits, true)) waiting_.push_back(index);
  }
}

void ComparedStreams::end_batch(StreamReceiver& receiver, Nanos now) {
  for (const Compared& compared : batch_) {
    Place& place = places_[compared.place];
    checked_.add(compared.bytes);
    receiver.release(place.id, compared.bytes);
    if (!compared.last) continue;
    receiver.close(place.id, now);
    place.known = false;
  }
  batch_.clear();
}

/// All that can be read of the connections that wait, as many of them as a batch has.
void ComparedStreams::begin_batch(StreamReceiver& receiver, Nanos now) {
  pieces_.clear();
  const std::size_t count = std::min<std::size_t>(waiting_.size(), SeededComparer::kMostPieces);
  for (const std::uint32_t index : std::span(waiting_).first(count)) {
    Place& place = places_[index];
    place.waits = false;
    const auto view = receiver.view(place.id);
    if (!view) continue;
    const bool last = view->state != ConnectionState::open;
    const std::uint64_t end = view->begin + view->bytes.size();
    const std::uint64_t bytes = chunks_.reach(index, end, last, now) - view->begin;
    if (bytes == 0) {
      if (!last) continue;
      receiver.close(place.id, now);
      place.known = false;
      continue;
    }
    batch_.push_back({index, bytes, last});
    pieces_.push_back({view->bytes.data(), bytes, view->peer.port, view->begin});
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  if (!pieces_.empty()) comparer_->submit(pieces_);
}

std::uint32_t ComparedStreams::abort_some(StreamReceiver& receiver, std::uint32_t most, Nanos now) {
  std::uint32_t aborted = 0;
  for (; aborted < most && next_abort_ < places_.size(); ++next_abort_) {
    Place& place = places_[next_abort_];
    if (!place.known) continue;
    receiver.abort(place.id, now);
    place.known = false;
    ++aborted;
  }
  return aborted;
}

}  // namespace warpline::service
