// SPDX-License-Identifier: Apache-2.0
// What a session sends next: what was lost, then responses and own messages in turns, those that are high before the
// others; acknowledgements travel with them, or alone if there is nothing.
#include <algorithm>

#include "warpline/message/internal/datagrams/sender.h"

namespace warpline::message {
namespace {

/// Fragments of one message before the next one's turn.
constexpr std::uint32_t kTurn = 16;

}  // namespace

/// What joins others leaves when they do, whatever the pacing.
bool Sender::may_send(Session& session, std::uint32_t bytes, bool joins) {
  if (session.probe) return true;
  if (session.go_back_n && session.in_flight_packets >= core_.context.config.credits) return false;
  const bool fits = session.in_flight_bytes == 0 ||
                    static_cast<double>(session.in_flight_bytes + bytes) <= session.allowed.window_bytes;
  if (!fits) return false;
  if (joins || session.allowed.pacing_gap.value == 0 || session.send_at <= core_.context.now()) return true;
  core_.timers.pace(session);
  return false;
}

bool Sender::send_one(Session& session, Outgoing& out) {
  Draft draft{out};
  if (!send_next(session, draft) && !(session.probe && send_probe(session, draft))) return send_bare(session, out);
  if (!draft.begun()) return true;  // a grant
  while (draft.limit != 0 && send_next(session, draft)) {
  }
  writer_.finish(session, draft);
  return true;
}

bool Sender::send_next(Session& session, Draft& draft) {
  if (session.lost_packets != 0 && send_lost(session, draft)) return true;
  if (session.lost_packets != 0 && !session.probe) return false;
  if (!draft.begun()) session.reply_turn = !session.reply_turn;
  if (has_high(session)) [[unlikely]]
    return send_by_priority(session, draft);
  return send_either(session, session.replies, session.own, draft);
}

/// What is high first, except that of kPriorityTurns packets one begins with what is not: nothing waits for ever.
bool Sender::send_by_priority(Session& session, Draft& draft) {
  const bool others = any(session.replies, session.own);
  if (!draft.begun() && others && session.high_sent == kPriorityTurns - 1 &&
      send_either(session, session.replies, session.own, draft)) {
    session.high_sent = 0;
    return true;
  }
  const bool begins = !draft.begun();
  if (!send_either(session, session.high_replies, session.high_own, draft))
    return send_either(session, session.replies, session.own, draft);
  if (begins && others && session.high_sent != kPriorityTurns - 1) ++session.high_sent;
  return true;
}

bool Sender::send_lost(Session& session, Draft& draft) {
  SentPacket* const packet = recovery_.next_lost(session);
  if (packet == nullptr) {
    recovery_.raise_floor(session);
    if (session.sent.span() != 0) core_.timers.arm_next(session);
    return false;
  }
  const bool joins = draft.begun();
  if (!writer_.fits(session, core_.messages[packet->message], packet->fragment, draft) ||
      !may_send(session, packet->bytes, joins)) {
    return false;
  }
  if (!recovery_.reserve(session, Recovery::Purpose::again)) {
    if (session.in_flight_packets == 0) recovery_.start_over(session);
    return false;
  }
  // A floor that reserve() raised stops before a lost packet.
  const SentPacket again = *packet;
  recovery_.resent(session, *packet);
  core_.context.counters.fragments_repeated.add(1);
  writer_.write_fragment(session, again.message, again.fragment, session.lost_packets == 0, draft);
  recovery_.raise_floor(session);
  return true;
}

bool Sender::send_new(Session& session, MessageList& list, bool own, Draft& draft) {
  if (list.first == kNone) return false;
  const std::uint32_t index = transfers_.next_to_send(list);
  if (index == kNone) return false;
  Message& message = core_.messages[index];
  const bool cancel = message.state == MessageState::withdrawing;
  const std::uint32_t fragment = cancel ? kCancelFragment : message.next_fragment;
  if (!writer_.fits(session, message, fragment, draft)) return false;
  const std::uint32_t bytes = writer_.bytes_of(PacketWriter::payload_of(message, fragment), draft);
  if (own) {
    session.room_blocked = !cancel && session.own_in_flight + bytes > session.room;
    if (session.room_blocked) {
      core_.timers.arm_next(session);
      return false;
    }
  }
  if (!may_send(session, bytes, draft.begun()) || !recovery_.reserve(session, Recovery::Purpose::fresh)) return false;
  ++message.next_fragment;
  const bool last = message.next_fragment == message.fragments;
  if (last) {
    transfers_.pop(list);
    if (!cancel) message.reach = Reach::maybe_handled;
  } else {
    message.reach = std::max(message.reach, Reach::not_handled);
    if (message.next_fragment % kTurn == 0 && list.first != list.last) transfers_.rotate(list);
  }
  const bool tail = last && message.fragments > 1 && message.role != TransferRole::own_request;
  const bool scarce_slots = message.role == TransferRole::own_message && session.free_slots == 0;
  writer_.write_fragment(session, index, fragment, tail || scarce_slots, draft);
  return true;
}

/// Nothing is new, so something in flight once more, or else a ping.
bool Sender::send_probe(Session& session, Draft& draft) {
  SentPacket* const probed = recovery_.next_to_probe(session);
  if (probed == nullptr || !writer_.fits(session, core_.messages[probed->message], probed->fragment, draft)) {
    session.probe = false;
    session.ping = true;
    return false;
  }
  const SentPacket packet = *probed;
  if (!recovery_.reserve(session, Recovery::Purpose::again)) {
    recovery_.on_timeout(session);
    return send_lost(session, draft);
  }
  // reserve() may have moved the floor, never over a packet in flight.
  probed->state = SentState::probed;
  core_.context.counters.fragments_repeated.add(1);
  writer_.write_fragment(session, packet.message, packet.fragment, true, draft);
  recovery_.sent_probe(session);
  return true;
}

bool Sender::send_bare(Session& session, Outgoing& out) {
  if (session.busy_count != 0) {
    if (!recovery_.reserve(session, Recovery::Purpose::acknowledgement)) return false;
    writer_.write_busy(session, out);
    return true;
  }
  if (session.go_away_due) {
    if (!recovery_.reserve(session, Recovery::Purpose::acknowledgement)) return false;
    writer_.write_go_away(session, out);
    return true;
  }
  if (session.ping) {
    if (!recovery_.reserve_ping(session)) return false;
    writer_.write_ping(session, out);
    return true;
  }
  if (session.ack_now) {
    if (!recovery_.may_acknowledge(session)) return false;
    writer_.write_bare(session, out, packet::kMessageHasAck);
    return true;
  }
  return session.path_probe && send_path_probe(session, out);
}

bool Sender::send_path_probe(Session& session, Outgoing& out) {
  if (!recovery_.reserve(session, Recovery::Purpose::acknowledgement)) return false;
  const std::uint32_t bytes = core_.paths.probe_bytes(session);
  if (bytes == 0) return false;
  writer_.write_path_probe(session, bytes, out);
  return true;
}

}  // namespace warpline::message
