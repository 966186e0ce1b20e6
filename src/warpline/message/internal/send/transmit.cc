// SPDX-License-Identifier: Apache-2.0
// Which session sends next: those with work stand in a queue, the others cost nothing.
#include <algorithm>

#include "warpline/message/internal/state.h"

namespace warpline {
namespace {

/// Packets of a session before the next one's turn.
constexpr unsigned kQuantum = 32;

}  // namespace

void EndpointState::make_ready(Session& session) {
  if (session.ready) return;
  session.ready = true;
  session.ready_next = kNone;
  const std::uint32_t index = index_of(session);
  (ready.last == kNone ? ready.first : sessions[ready.last].ready_next) = index;
  ready.last = index;
}

bool EndpointState::has_work(const Session& session) const {
  return session.lost_packets != 0 || session.replies.first != kNone || session.own.first != kNone || session.ack_now ||
         session.ping || session.busy_count != 0 || session.probe || session.accept_due;
}

void EndpointState::promote_acks() {
  while (acks.first != kNone) {
    Session& session = sessions[acks.first];
    if (session.ack_at > now()) return;
    acks.first = session.ack_next;
    if (acks.first == kNone) acks.last = kNone;
    session.ack_listed = false;
    if (session.unacknowledged == 0 || session.phase != SessionPhase::established) continue;
    session.ack_now = true;
    make_ready(session);
  }
}

/// Those that found no block, if there are more now.
void EndpointState::wake_starved() {
  if (starved.first == kNone || blocks.available() <= blocks_when_starved) return;
  for (std::uint32_t index = starved.first; index != kNone;) {
    Session& session = sessions[index];
    index = session.starved_next;
    session.starved_listed = false;
    make_ready(session);
  }
  starved = {};
}

void EndpointState::take_stray(Outgoing& out) {
  const StrayReply& stray = strays[stray_first];
  stray_first = (stray_first + 1) % static_cast<std::uint32_t>(strays.size());
  --stray_count;
  std::copy_n(stray.bytes.begin(), stray.length, out.head);
  out.head_length = stray.length;
  out.to = stray.to;
}

void EndpointState::prepare(Outgoing& packet) {
  packet.head_length = packet.payload_length = 0;
  packet.payload = nullptr;
  packet.token = 0;
  packet.session = kNoSession;
  packet.payload_device = packet.ecn_capable = false;
}

void EndpointState::address(const Session& session, Outgoing& packet) {
  packet.to = session.peer;
  packet.session = index_of(session);
  counters.packets_out.add(1);
  counters.bytes_out.add(packet.length());
}

std::size_t EndpointState::transmit(std::span<Outgoing> out) {
  promote_acks();
  std::size_t count = 0;
  for (; stray_count != 0 && has_room(out, count); ++count) {
    prepare(out[count]);
    take_stray(out[count]);
    counters.packets_out.add(1);
    counters.bytes_out.add(out[count].length());
  }
  blocks_when_starved = std::min(blocks_when_starved, blocks.available());
  wake_starved();
  if (grants.wanting.first != kNone) send_grants(out, count);
  Outgoing* before = nullptr;  // the datagram that sessions filled last
  std::uint32_t last = 0;      // where its last packet begins
  while (ready.first != kNone && has_room(out, count)) {
    Session& session = sessions[ready.first];
    ready.first = session.ready_next;
    if (ready.first == kNone) {
      ready.last = kNone;
    } else {
      prefetch(sessions[ready.first]);
    }
    session.ready = false;
    const std::size_t begin = count;
    const bool more = send_from(session, out, count);
    for (std::size_t i = begin; i < count; ++i) {
      out[i].to = session.peer;
      out[i].session = index_of(session);
      counters.bytes_out.add(out[i].length());
    }
    counters.packets_out.add(count - begin);
    if (count == begin + 1 && before != nullptr && join(session, *before, last, out[begin])) {
      --count;
    } else if (count != begin) {
      before = &out[count - 1];
      last = 0;
    }
    if (session.starved) {
      session.starved = false;
      wake_starved();  // this one may have freed what others need
      blocks_when_starved = blocks.available();
      if (session.starved_listed) continue;
      session.starved_listed = true;
      session.starved_next = kNone;
      (starved.last == kNone ? starved.first : sessions[starved.last].starved_next) = index_of(session);
      starved.last = index_of(session);
    } else if (more) {
      make_ready(session);
    }
  }
  return count;
}

/// Puts a session's packet behind that of another one of the same peer, if there is room in its datagram.
bool EndpointState::join(const Session& session, Outgoing& before, std::uint32_t& last, const Outgoing& packet) const {
  const std::uint32_t length = before.head_length + packet.head_length;
  const bool fits = length <= std::min(session.datagram_bytes, before.head_capacity) && before.payload_length == 0 &&
                    packet.payload_length == 0;
  // A protected packet's flags are sealed with it.
  if (!fits || !session.bundles || config.protection != nullptr || before.to != session.peer) return false;
  const bool both = MessagePrefix::type(before.head + last) == MessagePacketType::session &&
                    MessagePrefix::type(packet.head) == MessagePacketType::session;
  if (!both) return false;
  before.head[last + MessageHeader::kFlags] |= kMessageFollowed;
  last = before.head_length;
  std::copy_n(packet.head, packet.head_length, before.head + last);
  before.head_length = length;
  return true;
}

/// True if the session has more to send at once.
bool EndpointState::send_from(Session& session, std::span<Outgoing> out, std::size_t& count) {
  const auto next = [&]() -> Outgoing& {
    Outgoing& packet = out[count];
    packet.head_length = packet.payload_length = 0;
    packet.payload = nullptr;
    packet.token = 0;
    packet.payload_device = false;
    packet.ecn_capable = config.cc.kind == CcKind::dctcp;
    return packet;
  };
  if (session.phase == SessionPhase::opening) {
    if (!session.hello_due) return false;
    write_hello(session, next());
    ++count;
    return false;
  }
  if (session.phase != SessionPhase::established) return false;
  if (session.accept_due) {
    write_accept(session, next());
    ++count;
  }
  for (unsigned sent_here = 0; has_room(out, count); ++sent_here, ++count) {
    if (sent_here == kQuantum) return true;
    if (!send_one(session, next())) return false;
  }
  return true;
}

}  // namespace warpline
