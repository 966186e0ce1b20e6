// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/kept/stream_home.h"

#include <algorithm>
#include <utility>

namespace warpline::service {

using stream::ConnectionState;

StreamHome::StreamHome(std::shared_ptr<const void> rings, const stream::ReceiverSettings& settings, std::uint64_t chunk,
                       std::optional<Gpu> gpu)
    : rings_(std::move(rings)),
      ring_bytes_(settings.ring_bytes),
      chunk_(chunk),
      places_(settings.connections),
      news_(settings.connections),
      gpu_(std::move(gpu)) {
  read_yet_.reserve(gpu_ ? settings.connections : 0);
}

void StreamHome::begin(std::uint32_t index, const stream::StreamView& view) {
  Place& place = places_[index];
  place.ends = {view.peer, view.local};
  place.ring = view.bytes.data() - (view.begin & (ring_bytes_ - 1));
  place.told = 0;
  place.unread = 0;
  place.arrived.store(0, std::memory_order_relaxed);
  place.state.store(ConnectionState::open, std::memory_order_relaxed);
  place.taken.store(0, std::memory_order_relaxed);
  place.released.store(0, std::memory_order_relaxed);
  place.ticket.store(0, std::memory_order_relaxed);
  place.end.store(Said::nothing, std::memory_order_relaxed);
  place.number.store(++last_number_, std::memory_order_release);
  notice(index);
}

bool StreamHome::reach(std::uint32_t index, std::uint64_t arrived, ConnectionState state) {
  Place& place = places_[index];
  place.arrived.store(arrived, std::memory_order_release);
  place.state.store(state, std::memory_order_release);
  if (state == ConnectionState::open && (arrived == place.told || arrived - place.told < chunk_)) return false;
  place.told = chunk_ == 0 ? arrived : arrived - arrived % chunk_;
  notice(index);
  return true;
}

StreamHome::Said StreamHome::said(std::uint32_t index) {
  const Place& place = places_[index];
  Said said;
  // The end first: nothing is taken behind it.
  const std::uint8_t end = place.end.load(std::memory_order_acquire);
  said.end = end == Said::read ? Said::read : end == Said::let_go ? Said::let_go : Said::nothing;
  said.released = place.released.load(std::memory_order_acquire);
  if (gpu_) said.released = unread(index, said.released);
  said.rests = said.released == place.taken.load(std::memory_order_acquire);
  return said;
}

std::uint64_t StreamHome::unread(std::uint32_t index, std::uint64_t released) {
  Place& place = places_[index];
  if (place.awaited != 0 && gpu_->tickets->is_done(place.awaited)) {
    place.unread = place.next_unread;
    place.awaited = 0;
  }
  if (place.awaited != 0 || place.unread == released) return place.unread;
  const std::uint64_t ticket = place.ticket.load(std::memory_order_relaxed);
  if (gpu_->tickets->is_done(ticket)) return place.unread = released;
  place.awaited = ticket;
  place.next_unread = released;
  if (!std::exchange(place.awaits, true)) read_yet_.push_back(index);
  return place.unread;
}

void StreamHome::notice(std::uint32_t place) {
  if (!places_[place].noticed.exchange(true, std::memory_order_acq_rel)) (void)news_.push(place);
}

std::optional<StreamHome::News> StreamHome::news() {
  std::uint32_t index = 0;
  if (!news_.pop(index)) return std::nullopt;
  Place& place = places_[index];
  (void)place.noticed.exchange(false, std::memory_order_acq_rel);
  const std::uint64_t number = place.number.load(std::memory_order_acquire);
  return News{index, number, std::exchange(place.known, number) != number};
}

StreamHome::Piece StreamHome::take(std::uint32_t index) {
  Place& place = places_[index];
  const std::lock_guard lock(place.lock);
  const ConnectionState state = place.state.load(std::memory_order_acquire);
  const std::uint64_t arrived = place.arrived.load(std::memory_order_acquire);
  const std::uint64_t begin = place.taken.load(std::memory_order_relaxed);
  const std::uint64_t left = arrived - begin;
  if (left == 0) return {.state = state};
  if (state == ConnectionState::open && left < chunk_) return {};
  // Either the lcore sees that these are kept, or this sees that it lets nobody take any.
  kept_.fetch_add(1, std::memory_order_seq_cst);
  if (shut_.load(std::memory_order_seq_cst)) {
    kept_.fetch_sub(1, std::memory_order_release);
    return {};
  }
  const std::uint64_t size = std::min(left, chunk_ != 0 ? chunk_ : ring_bytes_ / kPieces);
  place.pieces.push_back({begin, begin + size});
  place.taken.store(begin + size, std::memory_order_release);
  return {.data = place.ring + (begin & (ring_bytes_ - 1)), .begin = begin, .size = size};
}

void StreamHome::give_back(std::uint32_t index, std::uint64_t begin, Reader reader) {
  Place& place = places_[index];
  {
    const std::lock_guard lock(place.lock);
    if (reader != Reader::none) {
      const std::uint64_t ticket = reader == Reader::known ? gpu_->tickets->draw() : gpu::StreamTickets::kNever;
      place.ticket.store(std::max(ticket, place.ticket.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    }
    std::ranges::lower_bound(place.pieces, begin, {}, &Taken::begin)->back = true;
    std::uint64_t released = place.released.load(std::memory_order_relaxed);
    while (!place.pieces.empty() && place.pieces.front().back) {
      released = place.pieces.front().end;
      place.pieces.pop_front();
    }
    place.released.store(released, std::memory_order_release);
    change(index);
  }
  kept_.fetch_sub(1, std::memory_order_seq_cst);
}

void StreamHome::let_go(std::uint32_t index, bool read) {
  Place& place = places_[index];
  const std::lock_guard lock(place.lock);
  place.end.store(read ? Said::read : Said::let_go, std::memory_order_release);
  change(index);
}

bool StreamHome::is_full(std::uint32_t index) const {
  constexpr std::uint64_t kSegment = 4096;  // a window that is smaller is not worth announcing
  const Place& place = places_[index];
  const std::uint64_t kept =
      place.taken.load(std::memory_order_relaxed) - place.released.load(std::memory_order_relaxed);
  return ring_bytes_ - kept < std::max(chunk_, kSegment);
}

void StreamHome::change(std::uint32_t index) {
  Place& place = places_[index];
  if (place.changed.exchange(true, std::memory_order_acq_rel)) return;
  std::uint32_t first = changed_.load(std::memory_order_relaxed);
  do {
    place.next_changed = first;
  } while (!changed_.compare_exchange_weak(first, index, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace warpline::service
