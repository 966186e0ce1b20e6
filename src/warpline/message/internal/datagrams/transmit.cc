// SPDX-License-Identifier: Apache-2.0
// Which session sends next: those with work stand in a queue, the others cost nothing.
#include <algorithm>

#include "warpline/message/internal/datagrams/sender.h"

namespace warpline::message {
namespace {

/// Packets of a session before the next one's turn.
constexpr unsigned kQuantum = 32;

}  // namespace

Sender::Sender(EndpointCore& core, Transfers& transfers, Recovery& recovery, PacketWriter& writer, Handshake& handshake)
    : core_(core),
      transfers_(transfers),
      recovery_(recovery),
      writer_(writer),
      handshake_(handshake),
      least_head_(kMinHeadCapacity) {
  const EndpointConfig& config = core.context.config;
  if (core.context.is_protected()) least_head_ = std::max(kMinHeadCapacity, config.datagram_bytes);
}

void Sender::prepare(Outgoing& packet) {
  packet.head_length = packet.payload_length = 0;
  packet.payload = nullptr;
  packet.token = 0;
  packet.session = kNoSession;
  packet.payload_device = packet.ecn_capable = false;
}

void Sender::address(const Session& session, Outgoing& packet) {
  packet.to = session.peer;
  packet.session = core_.sessions.index_of(session);
  core_.context.counters.packets_out.add(1);
  core_.context.counters.bytes_out.add(packet.length());
}

std::size_t Sender::transmit(std::span<Outgoing> out) {
  core_.ready.wake(core_.context.now());
  // Packets without a session come last, but one of a burst is theirs; notices of closed sessions take turns with them.
  const auto waits = [&] { return !core_.strays.empty() || !core_.farewells.empty(); };
  const bool sparing = waits() && out.size() > 1;
  std::size_t count = send_sessions(sparing ? out.first(out.size() - 1) : out);
  for (; waits() && has_room(out, count); ++count) {
    prepare(out[count]);
    farewell_turn_ = !farewell_turn_;
    const bool farewell = !core_.farewells.empty() && (farewell_turn_ || core_.strays.empty());
    (farewell ? core_.farewells : core_.strays).take(out[count]);
    core_.context.counters.packets_out.add(1);
    core_.context.counters.bytes_out.add(out[count].length());
  }
  return count;
}

std::size_t Sender::send_sessions(std::span<Outgoing> out) {
  std::size_t count = 0;
  if (core_.grants.wanted()) send_grants(out, count);
  Outgoing* before = nullptr;  // the datagram that sessions filled last
  std::uint32_t last = 0;      // where its last packet begins
  while (!core_.ready.empty() && has_room(out, count)) {
    const bool urgent = core_.ready.urgent_turn();
    Session& session = urgent ? core_.ready.take_urgent() : core_.ready.take();
    const std::size_t begin = count;
    const bool more = send_from(session, urgent, out, count);
    for (std::size_t i = begin; i < count; ++i) {
      out[i].to = session.peer;
      out[i].session = core_.sessions.index_of(session);
      core_.context.counters.bytes_out.add(out[i].length());
    }
    core_.context.counters.packets_out.add(count - begin);
    if (count == begin + 1 && before != nullptr && join(session, *before, last, out[begin])) {
      --count;
    } else if (count != begin) {
      before = &out[count - 1];
      last = 0;
    }
    if (session.starved) {
      session.starved = false;
      core_.ready.starve(session);
    } else if (more) {
      core_.ready.add(session);
    }
  }
  return count;
}

void Sender::send_grants(std::span<Outgoing> out, std::size_t& count) {
  while (core_.grants.due() && has_room(out, count)) {
    Session& session = core_.grants.take();
    const std::uint32_t index = core_.grants.next_of(session);
    if (index == kNone) continue;
    core_.grants.want(session);
    if (!recovery_.reserve(session, Recovery::Purpose::acknowledgement)) {
      session.starved = false;
      core_.grants.pause();
      break;
    }
    core_.grants.give(session, core_.messages[index]);
    prepare(out[count]);
    writer_.write_grant(session, index, out[count]);
    address(session, out[count]);
    ++count;
  }
  core_.grants.watch();
}

/// Puts a session's packet behind that of another one of the same peer, if there is room in its datagram.
bool Sender::join(Session& session, Outgoing& before, std::uint32_t& last, const Outgoing& packet) {
  const std::uint32_t length = before.head_length + packet.head_length;
  const bool fits = length <= std::min(session.datagram_bytes, before.head_capacity) && before.payload_length == 0 &&
                    packet.payload_length == 0;
  // A protected packet's flags are sealed with it.
  if (!fits || !session.bundles || core_.context.is_protected() || before.to != session.peer) return false;
  const bool both = packet::MessagePrefix::type(before.head + last) == packet::MessagePacketType::session &&
                    packet::MessagePrefix::type(packet.head) == packet::MessagePacketType::session;
  if (!both) return false;
  before.head[last + packet::MessageHeader::kFlags] |= packet::kMessageFollowed;
  last = before.head_length;
  std::copy_n(packet.head, packet.head_length, before.head + last);
  before.head_length = length;
  if (length > session.base_bytes) recovery_.mark_newest_large(session);
  return true;
}

/// True if the session has more to send at once. `urgent`: what is not high waits for another turn.
bool Sender::send_from(Session& session, bool urgent, std::span<Outgoing> out, std::size_t& count) {
  const auto next = [&]() -> Outgoing& {
    Outgoing& packet = out[count];
    packet.head_length = packet.payload_length = 0;
    packet.payload = nullptr;
    packet.token = 0;
    packet.payload_device = false;
    packet.ecn_capable = core_.context.config.cc.kind == CcKind::dctcp;
    return packet;
  };
  if (session.phase == SessionPhase::opening) {
    if (!session.hello_due) return false;
    handshake_.write_hello(session, next());
    ++count;
    return false;
  }
  if (session.phase != SessionPhase::established) return false;
  if (session.accept_due) {
    handshake_.write_accept(session, next());
    ++count;
  }
  for (unsigned sent_here = 0; has_room(out, count); ++sent_here, ++count) {
    if (sent_here == kQuantum) return true;
    if (urgent && !has_high(session)) return has_work(session);
    if (!send_one(session, next())) return false;
  }
  return true;
}

}  // namespace warpline::message
