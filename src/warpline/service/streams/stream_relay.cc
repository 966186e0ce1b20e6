// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_relay.h"

#include <algorithm>
#include <utility>

namespace warpline::service {
namespace {

using stream::ConnectionState;
using stream::RelayCode;
using stream::StreamReceiver;

constexpr std::uint64_t kMostPieceBytes = 256 << 10;  ///< each is a message, which the server takes as a whole

/// What messages and sessions are given to tell whose they are.
std::uint64_t context_of(stream::ConnectionId connection, std::uint32_t piece = 0) {
  return std::uint64_t{connection.generation} << 32 | std::uint64_t{connection.index} << 8 | piece;
}

}  // namespace

StreamRelay::StreamRelay(const message::PeerAddress& server, std::uint32_t connections, std::uint64_t ring_bytes)
    : server_(server), largest_(std::min(ring_bytes / kPieces, kMostPieceBytes)), outlets_(connections) {
  waiting_.reserve(connections);
}

/// Nothing if the connection that the message was of is gone.
StreamRelay::Outlet* StreamRelay::named(std::uint64_t context) {
  Outlet& outlet = outlets_[static_cast<std::uint32_t>(context) >> 8];
  return outlet.known && outlet.id.generation == context >> 32 ? &outlet : nullptr;
}

bool StreamRelay::turn(StreamReceiver& receiver, message::Endpoint& endpoint, Nanos now) {
  bool worked = false;
  const auto submitted = [&](std::uint32_t index) {
    Outlet& outlet = outlets_[index];
    // One that was lost in the meantime waits for nothing; its place may be another connection's by now.
    if (outlet.known && outlet.waiting && !submit(receiver, endpoint, outlet, now)) return false;
    outlet.waiting = false;
    worked = true;
    return true;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), submitted), waiting_.end());
  while (const auto event = receiver.poll()) {
    Outlet& outlet = outlets_[event->connection.index];
    if (!outlet.known || outlet.id != event->connection) {
      open(receiver, endpoint, *event, now);
    } else {
      submit_or_wait(receiver, endpoint, outlet, now);
    }
    worked = true;
  }
  return worked;
}

void StreamRelay::open(StreamReceiver& receiver, message::Endpoint& endpoint, const stream::StreamEvent& event,
                       Nanos now) {
  Outlet& outlet = outlets_[event.connection.index];
  const message::Opened opened =
      endpoint.connect(server_, {.context = context_of(event.connection), .ordered = true}, now);
  if (opened.status != message::CallStatus::ok) {
    counters_.no_session.add(1);
    receiver.abort(event.connection, now);
    return;
  }
  counters_.connections.add(1);
  const bool waiting = outlet.waiting;
  outlet = {.id = event.connection, .session = opened.session, .known = true, .waiting = waiting};
  submit_or_wait(receiver, endpoint, outlet, now);
}

void StreamRelay::submit_or_wait(StreamReceiver& receiver, message::Endpoint& endpoint, Outlet& outlet, Nanos now) {
  if (outlet.waiting || submit(receiver, endpoint, outlet, now)) return;
  outlet.waiting = true;
  waiting_.push_back(outlet.id.index);
}

/// False if the endpoint has no memory for the message now. A session that is gone has its event on the way: nothing is
/// tried again.
bool StreamRelay::send(message::Endpoint& endpoint, const Outlet& outlet, stream::RelayCode code, std::uint32_t number,
                       message::ConstBuffer message, Nanos now) {
  const message::Submitted submitted =
      endpoint.send(outlet.session, message,
                    {.context = context_of(outlet.id, number), .code = static_cast<std::uint16_t>(code)}, now);
  if (submitted.status == message::CallStatus::ok) ++under_way_;
  return submitted.status != message::CallStatus::no_memory && submitted.status != message::CallStatus::no_slot;
}

/// False if the endpoint had no memory for all that could be submitted.
bool StreamRelay::submit(StreamReceiver& receiver, message::Endpoint& endpoint, Outlet& outlet, Nanos now) {
  const auto view = receiver.view(outlet.id);
  if (!outlet.begun) {
    const auto begin = stream::encode(stream::RelayedBegin{view->peer, view->local});
    if (!send(endpoint, outlet, RelayCode::begin, kBegin, {begin.data(), begin.size()}, now)) return false;
    outlet.begun = true;
  }
  const std::uint64_t end = view->begin + view->bytes.size();
  while (outlet.count < kPieces && outlet.submitted < end) {
    const auto length = static_cast<std::uint32_t>(std::min(end - outlet.submitted, largest_));
    const std::uint8_t* const bytes = view->bytes.data() + (outlet.submitted - view->begin);
    const std::uint32_t number = (outlet.first + outlet.count) % kPieces;
    if (!send(endpoint, outlet, RelayCode::bytes, number, {bytes, length}, now)) return false;
    outlet.pieces[number] = {length, false};
    ++outlet.count;
    outlet.submitted += length;
  }
  if (view->state == ConnectionState::open || outlet.submitted < end || outlet.ending) return true;
  const auto last = stream::encode(stream::RelayedEnd{view->state, end});
  if (!send(endpoint, outlet, RelayCode::end, kEnd, {last.data(), last.size()}, now)) return false;
  outlet.ending = true;
  return true;
}

void StreamRelay::handle(StreamReceiver& receiver, message::Endpoint& endpoint, const message::MessageEvent& event,
                         Nanos now) {
  switch (event.kind) {
    case message::EventKind::sent:
      take_delivery(receiver, endpoint, event, now);
      return;
    case message::EventKind::lost:
      if (Outlet* const outlet = named(event.context)) lose(receiver, *outlet, now);
      (void)endpoint.forget(event.session, now);
      return;
    case message::EventKind::request:
    case message::EventKind::message:
      (void)endpoint.release(event.id, now);
      return;
    default:
      return;
  }
}

/// Deliveries are told as they are acknowledged, in any order; place is given back from the front.
void StreamRelay::take_delivery(StreamReceiver& receiver, message::Endpoint& endpoint,
                                const message::MessageEvent& event, Nanos now) {
  --under_way_;
  Outlet* const outlet = named(event.context);
  if (outlet == nullptr) return;
  if (event.status != message::MessageStatus::ok) {
    // Refused, such as for being too long; or the session is gone, and the event of that follows.
    if (event.status != message::MessageStatus::peer_lost) (void)endpoint.close(outlet->session, now);
    return;
  }
  const std::uint32_t number = event.context & 0xff;
  if (number == kBegin) return;
  if (number == kEnd) {
    outlet->end_delivered = true;
  } else {
    outlet->pieces[number].delivered = true;
    while (outlet->count != 0 && outlet->pieces[outlet->first].delivered) {
      const std::uint32_t length = std::exchange(outlet->pieces[outlet->first], {}).length;
      outlet->first = (outlet->first + 1) % kPieces;
      --outlet->count;
      counters_.delivered.add(length);
      receiver.release(outlet->id, length);
    }
    submit_or_wait(receiver, endpoint, *outlet, now);
  }
  if (!outlet->end_delivered || outlet->count != 0) return;
  counters_.ended.add(1);
  receiver.close(outlet->id, now);
  outlet->known = false;
  (void)endpoint.close(outlet->session, now);
}

/// Nothing of the ring is read any more: the session's messages have ended before.
void StreamRelay::lose(StreamReceiver& receiver, Outlet& outlet, Nanos now) {
  counters_.lost_sessions.add(1);
  receiver.abort(outlet.id, now);
  outlet.known = false;
}

std::uint32_t StreamRelay::abort_some(StreamReceiver& receiver, message::Endpoint& endpoint, std::uint32_t most,
                                      Nanos now) {
  std::uint32_t aborted = 0;
  for (; aborted < most && next_abort_ < outlets_.size(); ++next_abort_) {
    Outlet& outlet = outlets_[next_abort_];
    if (!outlet.known) continue;
    receiver.abort(outlet.id, now);
    outlet.known = false;
    (void)endpoint.close(outlet.session, now);
    ++aborted;
  }
  return aborted;
}

}  // namespace warpline::service
