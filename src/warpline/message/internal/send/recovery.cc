// SPDX-License-Identifier: Apache-2.0
// What is sent, and sent again.
#include "warpline/message/internal/send/recovery.h"

namespace warpline::message {
namespace {

/// Packet numbers that only packets sent again may use.
constexpr std::uint32_t kSpareNumbers = 64;

}  // namespace

bool Recovery::reserve(Session& session, Purpose purpose) {
  const std::uint32_t shares = purpose == Purpose::fresh ? 2 : purpose == Purpose::acknowledgement ? 1 : 0;
  const std::uint32_t spare = shares * spare_blocks();
  SentPackets::Place place = session.sent.reserve(core_.blocks, shares * kSpareNumbers, spare);
  if (place != SentPackets::Place::ready) {
    raise_floor(session);
    place = session.sent.reserve(core_.blocks, shares * kSpareNumbers, spare);
  }
  if (place == SentPackets::Place::no_block) session.starved = true;
  return place == SentPackets::Place::ready;
}

bool Recovery::may_acknowledge(Session& session) {
  if (session.sent.may_skip(kSpareNumbers)) return true;
  raise_floor(session);
  return session.sent.may_skip(kSpareNumbers);
}

bool Recovery::reserve_ping(Session& session) {
  if (reserve(session, Purpose::again)) return true;
  on_timeout(session);
  start_over(session);
  session.starved = false;
  return reserve(session, Purpose::again);
}

bool Recovery::give_way(Session& session) {
  if (session.sent.held() <= 1 || core_.blocks.available() > 2 * spare_blocks()) return false;
  on_timeout(session);
  start_over(session);
  return true;
}

SentPacket* Recovery::next_lost(Session& session) {
  while (session.lost_packets != 0) {
    SentPacket* const packet =
        waits(session, session.next_lost) ? &session.sent.at(core_.blocks, session.next_lost) : nullptr;
    if (packet == nullptr || packet->state != SentState::lost) {
      ++session.next_lost;
      continue;
    }
    if (transfers_.needs(*packet)) return packet;
    resent(session, *packet);
  }
  return nullptr;
}

void Recovery::resent(Session& session, SentPacket& packet) {
  packet.state = SentState::resent;
  --session.lost_packets;
  ++session.next_lost;
}

SentPacket* Recovery::next_to_probe(Session& session) {
  const std::uint64_t floor = session.sent.floor();
  const std::uint32_t span = session.sent.span();
  const bool newest = session.unanswered <= 1;
  for (std::uint32_t i = 0; i < span; ++i) {
    const std::uint64_t number = newest ? floor + span - 1 - i : floor + i;
    if (!waits(session, number)) continue;
    SentPacket& packet = session.sent.at(core_.blocks, number);
    if (packet.state == SentState::in_flight && transfers_.needs(packet)) {
      return &packet;
    }
  }
  return nullptr;
}

void Recovery::start_over(Session& session) {
  core_.paths.end_probe(session);
  session.sent.clear(core_.blocks);
  session.first_in_flight = session.next_lost = session.sent.next();
  session.lost_packets = 0;
  session.reorder_at = kNever;
  transfers_.begin_again(session);
}

}  // namespace warpline::message
