// SPDX-License-Identifier: Apache-2.0
// What acknowledgements say of packets, and packets of messages.
#include <algorithm>
#include <bit>

#include "warpline/message/internal/send/recovery.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kGroup = SentBlock::kPackets;

/// Bits [from, to) of 32.
constexpr std::uint32_t bits(std::uint64_t from, std::uint64_t to) {
  return static_cast<std::uint32_t>(((std::uint64_t{1} << to) - 1) & ~((std::uint64_t{1} << from) - 1));
}

}  // namespace

bool Recovery::take_ack(Session& session, const packet::MessageHeader& header, const std::uint8_t* bytes) {
  const packet::MessageAck ack = packet::load_ack(bytes);
  const std::uint8_t* words = bytes + packet::MessageAck::kLength;
  const std::uint64_t next = session.sent.next();
  const std::uint32_t behind = static_cast<std::uint32_t>(next) - ack.cumulative;
  if (behind > next) return false;
  const std::uint64_t cumulative = next - behind;
  for (std::uint32_t w = 0; w < header.ack_words; ++w) {
    const std::uint64_t first = (cumulative / 64 + w) * 64;
    const std::uint64_t word = packet::load_be64(words + 8 * w);
    if (word != 0 && first + static_cast<std::uint64_t>(std::bit_width(word)) > next) return false;
  }

  Tally tally;
  const std::uint64_t floor = floor_of(session);
  std::uint64_t at = std::max(session.acked_end, floor);
  while (at < cumulative) {
    const std::uint64_t group = at / kGroup * kGroup;
    const std::uint64_t end = std::min(cumulative, group + kGroup);
    acknowledge_group(session, group, bits(at - group, end - group), tally);
    at = end;
  }
  session.acked_end = std::max(session.acked_end, cumulative);
  for (std::uint32_t w = 0; w < header.ack_words; ++w) {
    const std::uint64_t word = packet::load_be64(words + 8 * w);
    const std::uint64_t first = (cumulative / 64 + w) * 64;
    for (const std::uint64_t group : {first, first + kGroup}) {
      const auto mask = static_cast<std::uint32_t>(word >> (group - first));
      if (mask == 0 || group + kGroup <= floor || group >= next) continue;
      acknowledge_group(session, group, group < floor ? mask & bits(floor - group, kGroup) : mask, tally);
    }
  }
  std::uint32_t marked = 0;
  if (header.packet_number >= session.room_number) {
    session.room_number = header.packet_number;
    session.room = ack.room;
    if (session.room_blocked) core_.ready.add(session);
    marked = std::min(ack.marked - session.marked_seen, tally.packets);
    session.marked_seen = ack.marked;
  }
  if (tally.packets != 0 || tally.spurious) after_acknowledgement(session, tally, ack, marked);
  return true;
}

/// Packets of one block: those of `mask`, counted from `first`, that still waited.
void Recovery::acknowledge_group(Session& session, std::uint64_t first, std::uint32_t mask, Tally& tally) {
  mask &= session.sent.unsettled(core_.blocks, first);
  for (; mask != 0; mask &= mask - 1) {
    acknowledge_packet(session, first + static_cast<std::uint64_t>(std::countr_zero(mask)), tally);
  }
}

void Recovery::acknowledge_packet(Session& session, std::uint64_t number, Tally& tally) {
  if (number >= session.sent.next()) return;
  const SentPacket& packet = session.sent.at(core_.blocks, number);
  if (packet.large) note_large_arrived(session);
  if (packet.probes_path()) path_probe_arrived(session, packet);
  if (packet.in_flight()) {
    leave_flight(session, packet);
    tally.bytes += packet.bytes;
    ++tally.packets;
    if (number + 1 < session.newest_acked) session.reordering = true;  // RFC 8985, section 6.2, step 3
    if (number + 1 > tally.newest) {
      tally.newest = number + 1;
      tally.newest_sent = packet.sent;
    }
  } else if (!packet.probes_path()) {
    tally.spurious = true;
    core_.context.counters.losses_spurious.add(1);
    note_late(session);
    if (packet.state == SentState::lost) --session.lost_packets;
  }
  session.sent.settle(core_.blocks, number);
  transfers_.acknowledged(session, packet);
}

void Recovery::take_back(Session& session, std::uint32_t message, std::uint32_t generation) {
  for (std::uint64_t number = session.sent.floor(); number < session.sent.next(); ++number) {
    if (!waits(session, number)) continue;
    const SentPacket& packet = session.sent.at(core_.blocks, number);
    if (packet.message != message || packet.generation != generation) continue;
    if (packet.in_flight()) {
      leave_flight(session, packet);
    } else if (packet.state == SentState::lost) {
      --session.lost_packets;
    }
    session.sent.settle(core_.blocks, number);
  }
  raise_floor(session);
}

}  // namespace warpline::message
