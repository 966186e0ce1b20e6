// SPDX-License-Identifier: Apache-2.0
// What arrives of streams.
#include <algorithm>
#include <span>
#include <utility>

#include "warpline/rpc/streams/call_streams.h"

namespace warpline::rpc {
namespace {

using message::Endpoint;
using message::EventKind;
using message::MessageEvent;
using message::MessageStatus;
using message::Reach;
using message::RefusalCode;

}  // namespace

bool CallStreams::handle(Endpoint& endpoint, const MessageEvent& event, Nanos now) {
  switch (event.kind) {
    case EventKind::stream_piece:
      take_message(endpoint, event, now);
      return true;
    case EventKind::stream_request:
      take_request(endpoint, event, now);
      return true;
    case EventKind::sent:
      return take_sent(endpoint, event, now);
    case EventKind::response:
      return take_response(endpoint, event, now);
    case EventKind::withdrawn:
      return take_withdrawn(endpoint, event, now);
    default:
      return false;
  }
}

bool CallStreams::take_sent(Endpoint& endpoint, const MessageEvent& event, Nanos now) {
  const std::uint32_t index = static_cast<std::uint32_t>((event.context & ~kStreamContext) >> 32);
  if ((event.context & kStreamContext) == 0 || index >= places_.size() || event.id.incoming) return false;
  CallStreamPlace& place = *places_[index];
  const auto which = static_cast<std::uint32_t>(event.context);
  if ((which & kStreamSmall) != 0) {
    const std::uint32_t number = which & ~kStreamSmall;
    if (number >= place.small.size() || (place.smalls >> number & 1) == 0 || place.small[number] != event.id)
      return false;
    place.smalls &= ~(1U << number);
  } else {
    if (which >= place.flights.size() || place.flights[which].done || place.flights[which].id != event.id) return false;
    place.flights[which].done = true;
    --under_way_[place.session.index];
    const auto flights = static_cast<std::uint32_t>(place.flights.size());
    while (place.first_flight != place.next_flight && place.flights[place.first_flight % flights].done)
      place.out_end.store(place.flights[place.first_flight++ % flights].end, std::memory_order_release);
    change(place);
  }
  list(place);
  if (event.status == MessageStatus::refused && place.phase != StreamPhase::ended)
    end_broken(endpoint, place, static_cast<RefusalCode>(event.code), now);
  return true;
}

bool CallStreams::take_response(Endpoint& endpoint, const MessageEvent& event, Nanos now) {
  const std::uint32_t index = static_cast<std::uint32_t>((event.context & ~kStreamContext) >> 32);
  if ((event.context & kStreamContext) == 0 || index >= places_.size()) return false;
  CallStreamPlace& place = *places_[index];
  if (!place.awaited || place.message != event.id) return false;
  place.awaited = false;
  list(place);
  const bool came = event.status == MessageStatus::ok;
  if (place.phase == StreamPhase::ended) {
    if (came) (void)endpoint.release(event.id, now);
    return true;
  }
  if (!came) {
    end(endpoint, place, {event.status, event.reach, event.code, nullptr, 0}, now);
    return true;
  }
  place.lent = true;
  Head head;
  const bool well = !event.device && packet::parse(event.data, event.length, head) == packet::MessageParse::ok &&
                    head.kind == Head::Kind::answer && head.to == number_of(place) &&
                    (place.remote == 0 || place.remote == head.from);
  if (!well) {
    counters_.malformed.add(1);
    end_broken(endpoint, place, RefusalCode::broken_stream, now);
    return true;
  }
  place.result = {MessageStatus::ok, event.reach, event.code, event.data + Head::kLength, event.length - Head::kLength};
  due_ = std::min(due_, place.deadline);
  take_total(endpoint, place, head.number, now);
  return true;
}

bool CallStreams::take_withdrawn(Endpoint& endpoint, const MessageEvent& event, Nanos now) {
  const auto place = std::ranges::find_if(
      places_, [&](const auto& each) { return each->phase == StreamPhase::serving && each->message == event.id; });
  if (place == places_.end()) return false;
  (void)endpoint.release(event.id, now);
  MessageStatus status = MessageStatus::cancelled;
  if ((*place)->deadline <= now) status = MessageStatus::deadline;
  if (!endpoint.facts((*place)->session).established) status = MessageStatus::peer_lost;
  end(endpoint, **place, {.status = status, .reach = Reach::handled}, now);
  return true;
}

void CallStreams::take_request(Endpoint& endpoint, const MessageEvent& event, Nanos now) {
  Head head;
  const bool well = !event.device && packet::parse(event.data, event.length, head) == packet::MessageParse::ok &&
                    head.kind == Head::Kind::open && event.length <= Head::kLength + kMaxPieceBytes &&
                    event.metadata().size() <= message::kMaxMetadataBytes;
  if (!well) counters_.malformed.add(1);
  const bool room = well && taker_ && of_session_[event.session.index] < streams_a_session_;
  CallStreamPlace* const place = room ? take_place() : nullptr;
  if (place == nullptr) {
    if (well) counters_.refused.add(1);
    (void)endpoint.release(event.id, now);
    return;
  }
  counters_.taken.add(1);
  ++of_session_[event.session.index];
  place->served = true;
  place->session = event.session;
  place->code = event.code;
  auto keep = [at = place->opening.get()](std::span<const std::uint8_t> bytes) mutable {
    return std::span<const std::uint8_t>(std::exchange(at, std::ranges::copy(bytes, at).out), bytes.size());
  };
  place->metadata = keep(event.metadata());
  place->deadline = event.deadline();
  place->request = keep({event.data + Head::kLength, event.length - Head::kLength});
  place->message = event.id;
  place->remote = head.from;
  place->credit = head.credit;
  place->phase = StreamPhase::serving;
  list(*place);
  tell_begin(*place, now);
  taker_(CallStream(*this, *place));
}

void CallStreams::take_message(Endpoint& endpoint, const MessageEvent& event, Nanos now) {
  Head head;
  const bool well = !event.device && packet::parse(event.data, event.length, head) == packet::MessageParse::ok &&
                    head.kind != Head::Kind::open && head.kind != Head::Kind::answer;
  CallStreamPlace* const place = well ? find(head.to) : nullptr;
  const bool known =
      place != nullptr && place->session == event.session && (place->remote == 0 || place->remote == head.from);
  bool kept = false;
  if (!well) {
    counters_.malformed.add(1);
  } else if (!known) {
    counters_.unknown.add(1);
  } else {
    place->remote = head.from;
    if (static_cast<std::int32_t>(head.credit - place->credit) > 0) place->credit = head.credit;
    list(*place);
    if (head.kind == Head::Kind::piece) {
      kept = take_piece(endpoint, *place, head, event, now);
    } else if (head.kind == Head::Kind::end) {
      if (place->total_known || !place->served) {
        counters_.repeated.add(1);
        end_broken(endpoint, *place, RefusalCode::broken_stream, now);
      } else {
        take_total(endpoint, *place, head.number, now);
      }
    }
  }
  if (!kept) (void)endpoint.release(event.id, now);
}

/// Returns whether the event's memory is kept.
bool CallStreams::take_piece(Endpoint& endpoint, CallStreamPlace& place, const Head& head, const MessageEvent& event,
                             Nanos now) {
  const std::uint64_t cost = std::uint64_t{event.length} + kPieceCost;
  const bool before = static_cast<std::int32_t>(head.number - place.expected) < 0;
  const bool behind = place.total_known && static_cast<std::int32_t>(head.number - place.total) >= 0;
  const auto size = static_cast<std::uint32_t>(place.held.size());
  CallStreamPlace::Held& held = place.held[head.number % size];
  const bool beyond = cost > place.told_credit - place.received_cost || head.number - place.released >= size;
  if (before || behind || beyond || held.here) {
    (before || behind || !beyond ? counters_.repeated : counters_.beyond_credit).add(1);
    end_broken(endpoint, place, RefusalCode::broken_stream, now);
    return false;
  }
  counters_.pieces_in.add(1);
  held = {event.id, event.data + Head::kLength, event.length - Head::kLength, true};
  place.received_cost += static_cast<std::uint32_t>(cost);
  if (static_cast<std::int32_t>(head.number + 1 - place.beyond) > 0) place.beyond = head.number + 1;
  for (; place.expected != place.beyond && place.held[place.expected % size].here; ++place.expected) {
    const CallStreamPlace::Held& next = place.held[place.expected % size];
    (void)place.arrived.push({next.data, next.length});
    place.bytes_in += next.length;
    change(place);
  }
  look_for_end(endpoint, place, now);
  return true;
}

/// The peer has sent so many pieces, and sends no more.
void CallStreams::take_total(Endpoint& endpoint, CallStreamPlace& place, std::uint32_t total, Nanos now) {
  const auto size = static_cast<std::uint32_t>(place.held.size());
  // No more than are paid for.
  if (total - place.beyond > size) {
    counters_.repeated.add(1);
    end_broken(endpoint, place, RefusalCode::broken_stream, now);
    return;
  }
  place.total_known = true;
  place.total = total;
  look_for_end(endpoint, place, now);
}

void CallStreams::look_for_end(Endpoint& endpoint, CallStreamPlace& place, Nanos now) {
  if (!place.total_known || place.expected != place.total) return;
  if (!place.served) return end(endpoint, place, place.result, now);
  place.known.fetch_or(kStreamAllRead, std::memory_order_release);
  change(place);
}

}  // namespace warpline::rpc
