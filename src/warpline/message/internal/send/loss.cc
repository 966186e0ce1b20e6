// SPDX-License-Identifier: Apache-2.0
// Which packets are lost: by packets sent later that arrived (RACK, RFC 8985; packet threshold as RFC 9002, section
// 6.1.1), or by a timeout.
#include <algorithm>
#include <bit>

#include "warpline/message/internal/send/recovery.h"

namespace warpline::message {
namespace {

constexpr std::uint64_t kPacketThreshold = 3;
constexpr std::uint8_t kMaxReorderWindows = 64;
constexpr std::uint8_t kReorderPersist = 16;  ///< RFC 8985, section 6.2, step 4

/// RFC 8899, section 4.3: loss must be excessive. The times in a row that long packets vanish until it is: so many that
/// by chance, where they are lost as often as before (p), it is less likely than 2^-30: p^n < 2^-30. Five on a path
/// without loss: some round trips.
std::uint8_t vanished_in_a_black_hole(std::uint16_t share) {
  constexpr int kSafety = 30;  // bits
  constexpr int kLeast = 5;
  const int bits = std::max(16 - static_cast<int>(std::bit_width(share)), 1);  // p is less than 2^-bits, or above half
  return static_cast<std::uint8_t>(std::max((kSafety + bits - 1) / bits, kLeast));
}

/// RFC 8985, section 6.2, step 4: how much longer than a round trip a packet may take.
Nanos reorder_window(const Session& session) {
  const std::int64_t window = session.rtt.min().value / 4 * session.reorder_windows;
  return Nanos{std::min(window, session.rtt.smoothed().value)};
}

}  // namespace

void Recovery::after_acknowledgement(Session& session, const Tally& tally, const packet::MessageAck& ack,
                                     std::uint32_t marked) {
  session.unanswered = 0;
  if (session.go_back_n && tally.packets != 0) session.last_sent = core_.context.now();  // RFC 6298, section 5.3
  const bool newer = tally.newest > session.newest_acked;
  if (newer) session.newest_acked = tally.newest;
  if (newer && tally.newest_sent >= core_.context.steady_since()) {
    // Who says that it came before the packet left has a clock that was set.
    const Nanos heard = core_.context.arrival() < tally.newest_sent ? core_.context.now() : core_.context.arrival();
    const Nanos rtt{std::max<std::int64_t>(heard.value - tally.newest_sent.value, 1)};
    const Nanos delay{std::min<std::int64_t>(ack.delay, rtt.value - 1)};
    session.latest_rtt = rtt;
    session.latest_delay = static_cast<std::uint32_t>(delay.value);
    // What the peer waited beyond its word counts as distance (RFC 9002, section 5.3).
    session.rtt.sample(Nanos{rtt.value - std::min(delay.value, session.max_ack_delay.value)});
    const CcSample sample{core_.context.now(), rtt, delay, tally.bytes, tally.packets, marked, session.in_flight_bytes};
    session.allowed = session.congestion.on_ack(sample);
  } else if (tally.packets != 0 && session.rtt.known()) {
    const CcSample sample{
        core_.context.now(),    session.latest_rtt, Nanos{session.latest_delay}, tally.bytes, tally.packets, marked,
        session.in_flight_bytes};
    session.allowed = session.congestion.on_ack(sample);
  }
  if (tally.spurious) {
    session.reordering = true;
    // Once: one late packet tells as much as its neighbours.
    if (!session.widened && session.reorder_windows < kMaxReorderWindows) ++session.reorder_windows;
    session.widened = true;
    session.reorder_persist = kReorderPersist;
  }
  if (!session.go_back_n) detect_losses(session, core_.context.arrival());
  raise_floor(session);
  if (has_work(session)) core_.ready.add(session);
}

void Recovery::raise_floor(Session& session) {
  // A packet found lost stays for two round trips, in case that it was only late; not if numbers become scarce.
  const std::int64_t kept_since = core_.context.now().value - 2 * session.rtt.smoothed().value;
  const bool scarce = session.sent.span() > SentPackets::kSpan / 2 || core_.blocks.available() <= spare_blocks();
  session.sent.raise_floor(core_.blocks, [&](const SentPacket& packet) {
    return packet.state == SentState::resent && (scarce || packet.sent.value < kept_since);
  });
  // Its first block is the session's own, which wakes no other session.
  if (session.starved_listed && session.sent.held() == 0) core_.ready.add(session);
}

void Recovery::detect_losses(Session& session, Nanos heard) {
  session.reorder_at = kNever;
  std::uint64_t number = std::max(session.first_in_flight, session.sent.floor());
  for (; number < session.newest_acked; ++number) {
    const std::uint32_t waiting = session.sent.unsettled(core_.blocks, number) >> (number % SentBlock::kPackets);
    if (waiting == 0) {  // none in the rest of the block
      number |= SentBlock::kPackets - 1;
      continue;
    }
    if ((waiting & 1) == 0) continue;
    const SentPacket& packet = session.sent.at(core_.blocks, number);
    if (!packet.in_flight()) continue;
    const bool passed = !session.reordering && session.newest_acked - 1 - number >= kPacketThreshold;
    const Nanos due{packet.sent.value + session.latest_rtt.value + reorder_window(session).value};
    if (!passed && due > heard) {
      session.reorder_at = due;
      core_.timers.arm(session, due);
      break;
    }
    mark_lost(session, number);
  }
  session.first_in_flight = std::min(number, session.sent.next());
  if (session.vanished >= vanished_in_a_black_hole(session.vanish_share)) fall_back(session);
}

void Recovery::mark_lost(Session& session, std::uint64_t number) {
  SentPacket& packet = session.sent.at(core_.blocks, number);
  leave_flight(session, packet);
  if (packet.probes_path()) return path_probe_lost(session, packet);
  core_.context.counters.packets_lost.add(1);
  if (packet.goes_away()) session.go_away_due = true;
  if (packet.large) note_vanished(session, number);
  note_loss(session);
  session.allowed = session.congestion.on_loss(core_.context.now(), false);
  // A probe is on its way with the same, and is lost for itself.
  const bool sent_again = packet.state == SentState::probed;
  packet.state = sent_again ? SentState::resent : SentState::lost;
  if (!sent_again && session.lost_packets++ == 0) session.next_lost = number;
}

void Recovery::note_loss(Session& session) {
  const std::int64_t since = core_.context.now().value - session.lost_at.value;
  if (session.losses == 0 || since > 2 * session.rtt.smoothed().value) {
    session.losses = 0;
    session.widened = false;
    session.lost_at = core_.context.now();
    session.congestion.remember();
    if (session.reorder_persist != 0) --session.reorder_persist;
    if (session.reorder_persist == 0) session.reorder_windows = 1;
  }
  ++session.losses;
}

void Recovery::note_late(Session& session) {
  if (session.losses == 0) return;
  --session.losses;
  if (session.losses == 0) session.allowed = session.congestion.restore();
}

void Recovery::on_timeout(Session& session) {
  const std::uint64_t first = std::max(session.first_in_flight, session.sent.floor());
  for (std::uint64_t number = first; number < session.sent.next(); ++number) {
    if (!waits(session, number)) continue;
    SentPacket& packet = session.sent.at(core_.blocks, number);
    if (!packet.in_flight()) continue;
    packet.state = SentState::lost;
    if (packet.goes_away()) session.go_away_due = true;
    if (session.lost_packets++ == 0) session.next_lost = number;
    core_.context.counters.packets_lost.add(1);
  }
  core_.paths.end_probe(session);
  session.first_in_flight = session.sent.next();
  session.in_flight_bytes = session.in_flight_packets = session.own_in_flight = 0;
  session.reorder_at = kNever;
  session.losses = 0;
  session.allowed = session.congestion.on_loss(core_.context.now(), true);
}

void Recovery::forget(Session& session) {
  session.sent.clear(core_.blocks);
  session.in_flight_bytes = session.in_flight_packets = session.lost_packets = 0;
}

}  // namespace warpline::message
