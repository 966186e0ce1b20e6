// SPDX-License-Identifier: Apache-2.0
// How long datagrams may be: probes of the path that arrive or not (RFC 8899), a path that carries less than before,
// and another path.
#include <algorithm>
#include <array>

#include "warpline/message/internal/send/recovery.h"

namespace warpline::message {

void Recovery::path_probe_arrived(Session& session, const SentPacket& packet) {
  core_.paths.probe_arrived(session, packet.bytes);
  seek_path(session);
}

/// No sign of congestion, nor is anything of it sent again.
void Recovery::path_probe_lost(Session& session, SentPacket& packet) {
  packet.state = SentState::resent;
  core_.paths.probe_lost(session, packet.bytes);
  seek_path(session);
}

/// Once for all that were under way at the same time: what was lost with them had the same reason.
void Recovery::note_vanished(Session& session, std::uint64_t number) {
  if (number < session.vanish_from) return;
  session.vanish_from = session.sent.next();
  ++session.vanished;
}

bool Recovery::large_in_flight(Session& session) {
  for (std::uint64_t number = session.sent.floor(); number < session.sent.next(); ++number) {
    if (!waits(session, number)) continue;
    const SentPacket& packet = session.sent.at(core_.blocks, number);
    if (packet.large && packet.in_flight()) return true;
  }
  return false;
}

/// The session has told of a black hole, and others go the same way.
void Recovery::fall_back(Session& session) {
  core_.context.counters.black_holes.add(1);
  core_.paths.fall_back(session);
  core_.paths.for_each_session(core_.paths.of(session), [&](Session& each) { cut_smaller(each); });
  seek_path(session);
}

void Recovery::change_path(Session& session, bool other_address) {
  core_.paths.end_probe(session);
  for (std::uint64_t number = session.sent.floor(); number < session.sent.next(); ++number) {
    if (!waits(session, number)) continue;
    SentPacket& packet = session.sent.at(core_.blocks, number);
    if (packet.probes_path()) {  // one that arrives yet says nothing of this path
      session.sent.settle(core_.blocks, number);
    } else if (packet.in_flight()) {
      packet.state = SentState::lost;
      if (packet.goes_away()) session.go_away_due = true;
      session.next_lost = session.lost_packets++ == 0 ? number : std::min(session.next_lost, number);
    }
  }
  session.first_in_flight = session.sent.next();
  session.in_flight_bytes = session.in_flight_packets = session.own_in_flight = 0;
  session.reorder_at = kNever;
  session.losses = 0;
  session.unanswered = 0;
  session.vanished = 0;
  session.vanish_from = session.sent.next();
  if (other_address) {
    session.vanish_share = 0;
    session.reordering = false;
    session.reorder_windows = 1;
    begin_elsewhere(session);
    cut_smaller(session);
    seek_path(session);
  }
  raise_floor(session);
  core_.ready.add(session);
}

void Recovery::begin_elsewhere(Session& session) {
  session.losses = 0;  // what was found lost there is not undone here
  session.send_at = Nanos{};
  core_.timers.cancel_pacing(session);
  core_.ready.add(session);
  begin_congestion_control(session, core_.context.config.cc);
  begin_slowly(session);
}

void Recovery::cut_smaller(Session& session) {
  if (session.go_back_n) return;
  if (session.vanished != 0) begin_congestion_control(session, core_.context.config.cc);  // it was no congestion
  session.vanished = 0;
  session.vanish_from = session.sent.next();
  const auto cut = [&](const SlotUse& slot) {
    if (slot.message == kNone || !transfers_.cut_smaller(session, slot.message)) return;
    take_back(session, slot.message, core_.messages[slot.message].generation);
  };
  for (const SlotUse& slot : session.outgoing) cut(slot);
  for (const SlotUse& slot : session.incoming) cut(slot);
  core_.ready.add(session);  // nothing may be in flight any more that would bring it back
}

}  // namespace warpline::message
