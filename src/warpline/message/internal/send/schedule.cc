// SPDX-License-Identifier: Apache-2.0
// What a session sends next: what was lost, then responses and own messages in turns; acknowledgements travel with
// them, or alone if there is nothing.
#include <algorithm>

#include "warpline/message/internal/state.h"

namespace warpline {
namespace {

/// Fragments of one message before the next one's turn.
constexpr std::uint32_t kTurn = 16;
/// Packet numbers that only packets sent again may use.
constexpr std::uint32_t kSpareNumbers = 64;

}  // namespace

/// What joins others leaves when they do, whatever the pacing.
bool EndpointState::may_send(Session& session, std::uint32_t bytes, bool joins) {
  if (session.probe) return true;
  if (session.go_back_n && session.in_flight_packets >= endpoint_.config.credits) return false;
  const bool fits = session.in_flight_bytes == 0 ||
                    static_cast<double>(session.in_flight_bytes + bytes) <= session.allowed.window_bytes;
  if (!fits) return false;
  if (joins || session.allowed.pacing_gap.value == 0 || session.send_at <= endpoint_.now()) return true;
  timers_.pace(session);
  return false;
}

/// A number, and if need be a block, for what is sent next. What is new leaves some of both to acknowledgements, and
/// these to what is sent again: by that alone numbers and blocks become free.
bool EndpointState::reserve(Session& session, Purpose purpose) {
  const std::uint32_t shares = purpose == Purpose::fresh ? 2 : purpose == Purpose::acknowledgement ? 1 : 0;
  const std::uint32_t spare_blocks = shares * spare_sent_blocks();
  SentPackets::Place place = session.sent.reserve(blocks_, shares * kSpareNumbers, spare_blocks);
  if (place != SentPackets::Place::ready) {
    raise_floor(session);
    place = session.sent.reserve(blocks_, shares * kSpareNumbers, spare_blocks);
  }
  if (place == SentPackets::Place::no_block) session.starved = true;
  return place == SentPackets::Place::ready;
}

/// For an acknowledgement alone: with nothing in flight it needs no block.
bool EndpointState::may_acknowledge(Session& session) {
  return session.sent.may_skip() || reserve(session, Purpose::acknowledgement);
}

bool EndpointState::send_one(Session& session, Outgoing& out) {
  Draft draft{out};
  if (!send_next(session, draft) && !(session.probe && send_probe(session, draft))) return send_bare(session, out);
  if (!draft.begun()) return true;  // a grant
  while (draft.limit != 0 && send_next(session, draft)) {
  }
  finish_packet(session, draft);
  return true;
}

bool EndpointState::send_next(Session& session, Draft& draft) {
  if (session.lost_packets != 0 && send_lost(session, draft)) return true;
  if (session.lost_packets != 0 && !session.probe) return false;
  if (!draft.begun()) session.reply_turn = !session.reply_turn;
  if (session.reply_turn && send_new(session, session.replies, false, draft)) return true;
  if (send_new(session, session.own, true, draft)) return true;
  return !session.reply_turn && send_new(session, session.replies, false, draft);
}

bool EndpointState::send_lost(Session& session, Draft& draft) {
  while (session.lost_packets != 0) {
    SentPacket& packet = session.sent.at(blocks_, session.next_lost);
    const bool settled =
        (session.sent.unsettled(blocks_, session.next_lost) >> (session.next_lost % SentBlock::kPackets) & 1) == 0;
    if (settled || packet.state != SentState::lost) {
      ++session.next_lost;
      continue;
    }
    if (transfers_.needs(packet)) {
      const bool joins = draft.begun();
      if (!fits(messages_[packet.message], packet.fragment, draft) || !may_send(session, packet.bytes, joins))
        return false;
      if (!reserve(session, Purpose::again)) {
        if (session.in_flight_packets == 0) start_over(session);
        return false;
      }
      // A floor that reserve() raised stops before a lost packet.
      const SentPacket again = packet;
      packet.state = SentState::resent;
      --session.lost_packets;
      ++session.next_lost;
      endpoint_.counters.fragments_repeated.add(1);
      write_fragment(session, again.message, again.fragment, session.lost_packets == 0, draft);
      raise_floor(session);
      return true;
    }
    packet.state = SentState::resent;
    --session.lost_packets;
    ++session.next_lost;
  }
  raise_floor(session);
  if (session.sent.span() != 0) timers_.arm_next(session);
  return false;
}

bool EndpointState::send_new(Session& session, MessageList& list, bool own, Draft& draft) {
  if (list.first == kNone) return false;
  const std::uint32_t index = transfers_.next_to_send(session, list);
  if (index == kNone) return false;
  Message& message = messages_[index];
  const bool cancel = message.state == MessageState::withdrawing;
  const std::uint32_t fragment = cancel ? kCancelFragment : message.next_fragment;
  if (!fits(message, fragment, draft)) return false;
  const std::uint32_t bytes = bytes_of(payload_of(session, message, fragment), draft);
  if (own) {
    session.room_blocked = !cancel && session.own_in_flight + bytes > session.room;
    if (session.room_blocked) {
      timers_.arm_next(session);
      return false;
    }
  }
  if (!may_send(session, bytes, draft.begun()) || !reserve(session, Purpose::fresh)) return false;
  ++message.next_fragment;
  const bool last = message.next_fragment == message.fragments;
  if (last) {
    transfers_.pop(list);
  } else if (message.next_fragment % kTurn == 0 && list.first != list.last) {
    transfers_.pop(list);
    message.queued_to_send = true;
    append(messages_, list, index);
  }
  const bool tail = last && message.fragments > 1 && message.role != TransferRole::own_request;
  const bool scarce_slots = message.role == TransferRole::own_message && session.free_slots == 0;
  write_fragment(session, index, fragment, tail || scarce_slots, draft);
  return true;
}

/// Tail-loss probe (RFC 8985, section 7.3): nothing is new, so the newest packet once more.
bool EndpointState::send_probe(Session& session, Draft& draft) {
  for (std::uint64_t number = session.sent.next(); number-- > session.sent.floor();) {
    if ((session.sent.unsettled(blocks_, number) >> (number % SentBlock::kPackets) & 1) == 0) continue;
    const SentPacket packet = session.sent.at(blocks_, number);
    if (packet.state != SentState::in_flight) continue;
    if (!transfers_.needs(packet)) break;
    if (!reserve(session, Purpose::again)) return false;
    endpoint_.counters.fragments_repeated.add(1);
    write_fragment(session, packet.message, packet.fragment, true, draft);
    return true;
  }
  session.probe = false;
  session.ping = true;
  return false;
}

bool EndpointState::send_bare(Session& session, Outgoing& out) {
  if (session.busy_count != 0) {
    if (!reserve(session, Purpose::acknowledgement)) return false;
    write_busy(session, out);
    return true;
  }
  if (session.ping) {
    if (!reserve(session, Purpose::again)) return false;
    write_ping(session, out);
    return true;
  }
  if (!session.ack_now || !may_acknowledge(session)) return false;
  write_bare(session, out, kMessageHasAck);
  return true;
}

}  // namespace warpline
