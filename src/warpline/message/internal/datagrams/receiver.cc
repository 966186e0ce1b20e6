// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/datagrams/receiver.h"

#include <algorithm>
#include <array>
#include <utility>

#include "warpline/message/protection.h"

namespace warpline::message {

namespace {

constexpr std::size_t kPacketsAhead = 8;
constexpr std::uint32_t kLeastFragment = 128;  ///< bytes; of datagrams of 256 with protection they are 160

/// The datagram without its first bytes; `room` takes a head that lies in two pieces.
Datagram from_byte(const Datagram& datagram, std::uint32_t begin, std::array<std::uint8_t, kMaxHeadBytes>& room) {
  Datagram left = datagram;
  const std::uint32_t in_head = std::min(begin, datagram.head_length);
  left.head += in_head;
  left.head_length -= in_head;
  left.rest += begin - in_head;
  left.rest_length -= begin - in_head;
  if (left.head_length >= kMaxHeadBytes || left.rest_length == 0 || left.rest_device) return left;
  const std::uint32_t more = std::min(kMaxHeadBytes - left.head_length, left.rest_length);
  std::copy_n(left.head, left.head_length, room.data());
  std::copy_n(left.rest, more, room.data() + left.head_length);
  left.head = room.data();
  left.head_length += more;
  left.rest += more;
  left.rest_length -= more;
  return left;
}

}  // namespace

/// Goes through packets ahead of what is done with them, and fetches their sessions.
class FetchAhead {
 public:
  FetchAhead(const SessionTable& sessions, std::span<const Datagram> datagrams)
      : sessions_(sessions), datagrams_(datagrams) {
    for (std::size_t i = 0; i < kPacketsAhead; ++i) next();
  }

  [[gnu::always_inline]] void next() {
    if (packet_.empty()) {
      if (datagrams_.empty()) return;
      packet_ = {datagrams_.front().head, datagrams_.front().head_length};
      datagrams_ = datagrams_.subspan(1);
    }
    const std::span<const std::uint8_t> packet = std::exchange(packet_, {});
    if (packet.size() < packet::MessageHeader::kLength) return;
    const std::uint32_t index =
        SessionTable::index_in(packet::load_be32(packet.data() + packet::MessageHeader::kSession));
    if (index < sessions_.size()) prefetch(sessions_[index]);
    packet::MessageHeader header;  // no more than its length is made of: what is fetched in vain does no harm
    header.flags = packet[packet::MessageHeader::kFlags];
    header.ack_words = packet[packet::MessageHeader::kWords];
    header.payload_length = packet::load_be16(packet.data() + packet::MessageHeader::kPayloadLength);
    const bool followed = header.has(packet::kMessageFollowed) && header.packet_length() < packet.size();
    if (followed) packet_ = packet.subspan(header.packet_length());
  }

 private:
  const SessionTable& sessions_;
  std::span<const Datagram> datagrams_;   ///< that it has not come to
  std::span<const std::uint8_t> packet_;  ///< next one of the datagram that it is at
};

void Receiver::receive(std::span<const Datagram> datagrams) {
  FetchAhead ahead(core_.sessions, datagrams);
  for (const Datagram& datagram : datagrams) {
    ahead.next();
    core_.context.set_arrival(datagram.arrived);
    receive_one(datagram, ahead);
  }
}

void Receiver::receive_one(const Datagram& datagram, FetchAhead& ahead) {
  switch (packet::MessagePrefix::check(datagram.head, datagram.head_length)) {
    case packet::MessageParse::ok:
      break;
    case packet::MessageParse::truncated:
      return core_.context.drop(MessageDrop::truncated);
    case packet::MessageParse::not_ours:
      return core_.context.drop(MessageDrop::not_ours);
    case packet::MessageParse::version:
      return handshake_.receive_wrong_version(datagram);
    case packet::MessageParse::type:
      return core_.context.drop(MessageDrop::type);
    case packet::MessageParse::malformed:
      return core_.context.drop(MessageDrop::malformed);
  }
  if (packet::MessagePrefix::type(datagram.head) == packet::MessagePacketType::session)
    return receive_packets(datagram, ahead);
  handshake_.receive(datagram);
}

bool Receiver::parse_or_drop(const Datagram& datagram, packet::MessageHeader& header) {
  const packet::MessageParse parsed = packet::parse(datagram.head, datagram.head_length + datagram.rest_length, header);
  if (parsed == packet::MessageParse::ok) return true;
  core_.context.drop(parsed == packet::MessageParse::truncated ? MessageDrop::truncated : MessageDrop::malformed);
  return false;
}

/// Receives all packets of a datagram, which may belong to several sessions, one after the other.
void Receiver::receive_packets(const Datagram& datagram, FetchAhead& ahead) {
  packet::MessageHeader header;
  if (!parse_or_drop(datagram, header)) return;
  if (!header.has(packet::kMessageFollowed)) return receive_packet(datagram, header);
  std::array<std::uint8_t, kMaxHeadBytes> room;
  Datagram left = datagram;
  for (;;) {
    receive_packet(left, header);
    if (!header.has(packet::kMessageFollowed)) return;
    ahead.next();
    core_.context.counters.packets_behind.add(1);
    left = from_byte(left, header.packet_length(), room);
    const bool session = left.head_length >= std::min(kMaxHeadBytes, left.head_length + left.rest_length) &&
                         packet::MessagePrefix::check(left.head, left.head_length) == packet::MessageParse::ok &&
                         packet::MessagePrefix::type(left.head) == packet::MessagePacketType::session;
    if (!session) return core_.context.drop(MessageDrop::malformed);
    if (!parse_or_drop(left, header)) return;
  }
}

void Receiver::receive_packet(const Datagram& datagram, const packet::MessageHeader& header) {
  Session* const session = session_of(header, datagram);
  if (session == nullptr) return;
  switch (session->received.ask(header.packet_number, header.floor())) {
    case PacketWindow::Answer::fresh:
      break;
    case PacketWindow::Answer::duplicate:
      return core_.context.drop(MessageDrop::duplicate);
    case PacketWindow::Answer::stale:
      return core_.context.drop(MessageDrop::stale);
    case PacketWindow::Answer::beyond:
      return core_.context.drop(MessageDrop::beyond_window);
  }
  if (!authentic(*session, header, datagram)) return core_.context.drop(MessageDrop::not_authentic);
  take_packet(*session, header, datagram);
  if (newest_elsewhere_) [[unlikely]] {
    newest_elsewhere_ = false;
    validation_.challenge(*session, datagram.from);
  }
}

/// Returns the packet's established session. nullptr: dropped; a reset may tell the sender that it is unknown.
Session* Receiver::session_of(const packet::MessageHeader& header, const Datagram& datagram) {
  Session* const named = core_.sessions.named(header.session);
  if (named == nullptr || named->phase != SessionPhase::established) {
    if (core_.sessions.elsewhere(header.session)) {
      core_.context.drop(MessageDrop::misdirected);
      return nullptr;
    }
    core_.context.drop(MessageDrop::unknown_session);
    // Also while it is being opened: nothing is sent on a session that nobody has confirmed, so this is of one before.
    if (!header.has(packet::kMessageClose)) handshake_.reset(datagram.from, header);
    return nullptr;
  }
  Session& session = *named;
  if (session.peer != datagram.from) [[unlikely]]
    return session_elsewhere(session, header, datagram);
  if (session.cookie == header.cookie) return &session;
  core_.context.drop(MessageDrop::wrong_cookie);
  return nullptr;
}

/// The session, if a packet from another address than its peer's may be the peer's all the same. An older one than
/// others that came was only slow (RFC 9000, section 9.3).
Session* Receiver::session_elsewhere(Session& session, const packet::MessageHeader& header, const Datagram& datagram) {
  if (session.cookie != header.cookie || !validation_.may_follow(session, datagram.from)) {
    core_.context.drop(MessageDrop::wrong_peer);
    handshake_.reset(datagram.from, header);
    return nullptr;
  }
  newest_elsewhere_ = header.packet_number >= session.received.end();
  return &session;
}

/// The next of its session, or one that was missing.
void Receiver::take_packet(Session& session, const packet::MessageHeader& header, const Datagram& datagram) {
  session.quiet_from = core_.context.attended();
  session.doubt = LossReason::none;
  if (header.has(packet::kMessageClose)) {
    core_.context.counters.packets_in.add(1);
    return life_.lose(session, LossReason::closed);
  }
  const std::uint8_t* at = datagram.head + packet::MessageHeader::kLength;
  if (header.has(packet::kMessageHasAck)) {
    if (!recovery_.take_ack(session, header, at)) return core_.context.drop(MessageDrop::bad_acknowledgement);
  }
  if (!session.confirmed) handshake_.confirm(session);
  packet::MessageFragment fragment;
  if (header.has(packet::kMessageHasFragment) && !header.has(packet::kMessageBundle) &&
      packet::parse(at + header.ack_length(), header.payload_length, fragment) != packet::MessageParse::ok) {
    return core_.context.drop(MessageDrop::bad_fragment);
  }
  if (session.go_back_n && header.elicits() &&
      header.packet_number != std::max(session.received.base(), header.floor())) {
    // Each end's notice may be behind that which the other does not take: both would wait for ever.
    if (header.has(packet::kMessageHasFragment) && fragment.slot < kSlots) {
      const bool busy =
          fragment.kind == packet::FragmentKind::busy || fragment.kind == packet::FragmentKind::busy_response;
      if (busy) take_busy(session, fragment);
      if (fragment.kind == packet::FragmentKind::refuse) reassembly_.take_refusal(session, fragment);
    }
    return core_.context.drop(MessageDrop::out_of_order);
  }
  const bool had_gap = session.received.gap();
  std::uint32_t taken = 1;
  if (header.has(packet::kMessageBundle)) {
    taken = take_bundle(session, header, datagram);
    if (taken == 0) return;
  } else {
    if (header.has(packet::kMessageHasFragment)) {
      const bool took = fragment.head_follows
                            ? take_with_head(session, datagram, header.length(), fragment, header.payload_length)
                            : take_fragment(session, datagram, header.length(), fragment, header.payload_length);
      if (!took) return;
    }
    session.received.take(header.packet_number, header.floor());
  }
  core_.context.counters.packets_in.add(1);
  core_.context.counters.bytes_in.add(header.packet_length());
  const auto number = static_cast<std::uint32_t>(header.packet_number);
  if (header.elicits() && static_cast<std::int32_t>(number - session.newest) >= 0) {
    session.newest = number;
    session.newest_at = core_.context.arrival();
  }
  if (datagram.ecn == 3) session.marked += taken;
  if (header.elicits()) schedule_ack(session, header, !had_gap && !session.received.gap());
  if (session.in_flight_packets == 0) core_.timers.disarm(session);
  // It may have ended the last that there was.
  if (session.peer_leaves) [[unlikely]]
    core_.timers.arm(session, core_.context.now());
}

namespace {

/// Bytes of a datagram that are to be read at once: where they lie, or in `copy` if they are in two pieces.
const std::uint8_t* bytes_at(const Datagram& datagram, std::uint32_t at, std::uint32_t length, std::uint8_t* copy) {
  if (at + length <= datagram.head_length) return datagram.head + at;
  if (at >= datagram.head_length) return datagram.rest + (at - datagram.head_length);
  const std::uint32_t in_head = datagram.head_length - at;
  std::copy_n(datagram.head + at, in_head, copy);
  std::copy_n(datagram.rest, length - in_head, copy + in_head);
  return copy;
}

/// Cut where the sender must have cut it.
bool well_cut(const packet::MessageFragment& fragment, std::uint32_t length) {
  if (fragment.slot >= kSlots) return false;
  if (fragment.kind == packet::FragmentKind::grant || fragment.kind == packet::FragmentKind::grant_response)
    return length == 0 && fragment.fragment_bytes == 0;
  if (fragment.fragment_bytes == 0) return length == fragment.total;
  return fragment.fragment_bytes >= kLeastFragment && fragment.fragment_bytes < fragment.total &&
         fragment.offset < fragment.total && fragment.offset % fragment.fragment_bytes == 0 &&
         length == std::min<std::uint32_t>(fragment.fragment_bytes, fragment.total - fragment.offset);
}

}  // namespace

/// How many of its fragments count as received: each has a number of its own. What checks the path is one.
std::uint32_t Receiver::take_bundle(Session& session, const packet::MessageHeader& header, const Datagram& datagram) {
  const std::uint64_t floor = header.floor();
  if (header.checks_path()) [[unlikely]] {
    if (!validation_.take(session, header, datagram)) return 0;
    session.received.take(header.packet_number, floor);
    return 1;
  }
  const std::uint32_t end = header.length() + header.payload_length;
  std::uint32_t at = header.length() - packet::MessageFragment::kLength;
  std::uint32_t taken = 0;
  std::uint32_t dropped = 0;
  for (std::uint64_t number = header.packet_number; at != end; ++number) {
    std::uint8_t copy[packet::MessageFragment::kLength];
    const std::uint32_t readable = std::min(end - at, packet::MessageFragment::kLength);
    packet::MessageFragment fragment;
    if (datagram.rest_device ||
        packet::parse_bundled(bytes_at(datagram, at, readable, copy), end - at, fragment) != packet::MessageParse::ok) {
      core_.context.drop(MessageDrop::bad_fragment);
      ++dropped;
      break;
    }
    at += packet::MessageFragment::kLength;
    if (session.received.ask(number, floor) == PacketWindow::Answer::fresh) {
      const bool took = take_fragment(session, datagram, at, fragment, fragment.total);
      if (took) session.received.take(number, floor);
      ++(took ? taken : dropped);
    }
    at += fragment.total;
  }
  if (dropped != 0) core_.context.counters.fragments_dropped.add(taken == 0 ? dropped - 1 : dropped);
  return taken;
}

bool Receiver::take_fragment(Session& session, const Datagram& datagram, std::uint32_t at,
                             const packet::MessageFragment& fragment, std::uint32_t length) {
  if (!well_cut(fragment, length)) {
    core_.context.drop(MessageDrop::bad_fragment);
    return false;
  }
  switch (fragment.kind) {
    case packet::FragmentKind::request:
    case packet::FragmentKind::message:
      return reassembly_.take_incoming(session, datagram, at, fragment, length);
    case packet::FragmentKind::response:
      return reassembly_.take_response(session, datagram, at, fragment, length);
    case packet::FragmentKind::cancel:
      reassembly_.take_cancel(session, fragment);
      return true;
    case packet::FragmentKind::refuse:
      reassembly_.take_refusal(session, fragment);
      return true;
    case packet::FragmentKind::busy:
    case packet::FragmentKind::busy_response:
      take_busy(session, fragment);
      return true;
    case packet::FragmentKind::grant:
    case packet::FragmentKind::grant_response:
      transfers_.granted(session, fragment);
      return true;
    case packet::FragmentKind::go_away:
      life_.peer_leaves(session);
      return true;
  }
  return false;
}

/// The length of the message's head precedes the payload.
bool Receiver::take_with_head(Session& session, const Datagram& datagram, std::uint32_t at,
                              packet::MessageFragment fragment, std::uint32_t length) {
  fragment.head = packet::load_be16(datagram.head + at);  // it is within the first kMaxHeadBytes
  fragment.head_follows = false;
  if (fragment.head == 0 || !packet::has_valid_head(fragment)) {
    core_.context.drop(MessageDrop::bad_fragment);
    return false;
  }
  constexpr std::uint32_t kHeadLength = packet::MessageFragment::kHeadLength;
  return take_fragment(session, datagram, at + kHeadLength, fragment, length - kHeadLength);
}

/// The peer has no memory for a message: it is taken back as if it had never been sent, so that it neither stands in
/// the way of others nor looks like congestion, and tried again later.
void Receiver::take_busy(Session& session, const packet::MessageFragment& fragment) {
  const std::uint32_t index = transfers_.defer(session, fragment);
  if (index == kNone) return;
  recovery_.take_back(session, index, core_.messages[index].generation);
  session.unanswered = 0;
  if (has_work(session)) core_.ready.add(session);
}

bool Receiver::authentic(Session& session, const packet::MessageHeader& header, const Datagram& datagram) {
  if (!core_.context.is_protected()) return !header.has(packet::kMessageProtected);
  if (!header.has(packet::kMessageProtected) || datagram.rest_length != 0) return false;
  std::uint8_t* text = datagram.head + header.length();
  std::uint8_t* tag = text + header.payload_length;
  return core_.context.config.protection->open(
      core_.sessions.index_of(session), header.packet_number, {datagram.head, header.length()},
      {text, header.payload_length},
      std::span<const std::uint8_t, PacketProtection::kTagBytes>(tag, packet::kMessageTagLength));
}

void Receiver::schedule_ack(Session& session, const packet::MessageHeader& header, bool in_order) {
  ++session.unacknowledged;
  const bool at_once = header.has(packet::kMessagePrompt | packet::kMessagePing) || !in_order || session.go_back_n ||
                       session.unacknowledged >= core_.context.config.ack_packets;
  if (at_once) {
    session.ack_now = true;
    core_.ready.add(session);
  } else {
    core_.ready.owe_acknowledgement(session, core_.context.in(core_.context.config.max_ack_delay));
  }
}

}  // namespace warpline::message
