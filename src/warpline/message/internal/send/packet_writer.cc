// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/send/packet_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "warpline/base/prefetch.h"
#include "warpline/message/protection.h"

namespace warpline::message {
namespace {

/// Zeros for probes where a head has no room for them.
constexpr std::array<std::uint8_t, 65536> kPadding{};

}  // namespace

bool PacketWriter::has_room_for_head(const Session& session, const Draft& draft) const {
  if (draft.out.head_capacity >= std::min(session.datagram_bytes, kMetadataHeadCapacity)) return true;
  core_.context.counters.heads_too_small.add(1);
  return false;
}

/// Fixed header and, if due or asked for by `flags`, an acknowledgement. Returns the first byte behind.
std::uint8_t* PacketWriter::write_header(Session& session, std::uint64_t number, std::uint8_t flags,
                                         std::uint32_t payload, std::uint8_t* head) {
  packet::MessageHeader header;
  header.flags = flags;
  header.session = session.remote;
  header.cookie = session.cookie;
  header.packet_number = number;
  header.floor_distance = static_cast<std::uint16_t>(number - std::min(floor_of(session), number));
  header.payload_length = static_cast<std::uint16_t>(payload);
  if (core_.context.is_protected()) header.flags |= packet::kMessageProtected;
  const bool pads = payload != 0 && !header.has(packet::kMessageHasFragment);
  if ((session.unacknowledged != 0 || session.ack_now) && !header.has(packet::kMessageClose) && !pads)
    header.flags |= packet::kMessageHasAck;
  std::uint8_t* at = head + packet::MessageHeader::kLength;
  if (header.has(packet::kMessageHasAck)) {
    const PacketWindow& received = session.received;
    const std::uint32_t all_words = received.word_count();
    const std::uint32_t fits = (session.datagram_bytes - packet_bytes(payload)) / 8;
    const std::uint32_t words = std::min(all_words, fits);
    header.ack_words = static_cast<std::uint8_t>(words);
    packet::MessageAck ack;
    ack.cumulative = static_cast<std::uint32_t>(received.base());
    const std::int64_t delay = core_.context.now().value - session.newest_at.value;
    ack.delay = static_cast<std::uint32_t>(std::min<std::int64_t>(delay, std::numeric_limits<std::uint32_t>::max()));
    ack.marked = session.marked;
    ack.room = session.room_told = room_of(session, core_.context.config.receive_window);
    packet::emit(ack, at);
    at += packet::MessageAck::kLength;
    for (std::uint32_t w = 0; w < words; ++w, at += 8) packet::store_be64(at, received.word(w));
    session.unacknowledged = 0;
    session.ack_now = words < all_words;  // the rest in a packet of its own
  }
  packet::emit(header, head);
  return at;
}

void PacketWriter::finish(Session& session, Draft& draft) {
  Outgoing& out = draft.out;
  const std::uint32_t payload = out.head_length - draft.header_length;
  const auto joined = static_cast<std::uint32_t>(session.sent.next() - draft.number - 1);
  if (draft.prompt) out.head[packet::MessageHeader::kFlags] |= packet::kMessagePrompt;
  if (joined != 0) {
    out.head[packet::MessageHeader::kFlags] |= packet::kMessageBundle;
    packet::store_be16(out.head + packet::MessageHeader::kPayloadLength, static_cast<std::uint16_t>(payload));
    core_.context.counters.fragments_bundled.add(joined);
  }
  const std::uint32_t tag = core_.context.is_protected() ? packet::kMessageTagLength : 0;
  if (out.length() + tag <= session.base_bytes) {
    session.ping = false;  // the peer answers this as well
  } else if (joined == 0) {
    draft.packet->large = true;
  } else {
    mark_large(session, draft);
  }
  if (tag == 0) return;
  seal(session, draft.number, out.head, draft.header_length, payload);
  out.head_length += tag;
}

void PacketWriter::mark_large(Session& session, const Draft& draft) {
  for (std::uint64_t number = draft.number; number < session.sent.next(); ++number) {
    session.sent.at(core_.blocks, number).large = true;
  }
}

void PacketWriter::seal(Session& session, std::uint64_t number, std::uint8_t* head, std::uint32_t header,
                        std::uint32_t payload) {
  std::uint8_t* text = head + header;
  core_.context.config.protection->seal(
      core_.sessions.index_of(session), number, {head, header}, {text, payload},
      std::span<std::uint8_t, PacketProtection::kTagBytes>(text + payload, packet::kMessageTagLength));
}

void PacketWriter::write_fragment(Session& session, std::uint32_t index, std::uint32_t fragment, bool prompt,
                                  Draft& draft) {
  Outgoing& out = draft.out;
  if (fragment == kGrantFragment) return write_grant(session, index, out);
  Message& message = core_.messages[index];
  const std::uint32_t payload = payload_of(message, fragment);
  const std::uint32_t bytes = bytes_of(payload, draft);
  const double left = session.allowed.window_bytes - static_cast<double>(session.in_flight_bytes + bytes);
  const bool last_of_window = left < static_cast<double>(session.datagram_bytes) && message.fragments > 1;
  draft.prompt = draft.prompt || prompt || session.probe || last_of_window;
  const std::uint64_t number = session.sent.next();
  SentPacket& packet = recovery_.add(session);
  packet.message = index;
  packet.generation = message.generation;
  packet.fragment = fragment;
  const bool reply = message.role == TransferRole::peer_request;
  packet.own = !reply;
  packet.large = false;
  if (draft.begun()) {
    recovery_.count_in_flight(session, packet, bytes);
  } else {
    recovery_.sent(session, packet, bytes);
    const std::uint8_t* const end = write_header(session, number, packet::kMessageHasFragment, payload, out.head);
    out.head_length = static_cast<std::uint32_t>(end - out.head);
    draft.number = number;
    draft.packet = &packet;
    draft.header_length = out.head_length + packet::MessageFragment::kLength;
    if (session.bundles && is_small(message, fragment)) {
      draft.limit = std::min(session.datagram_bytes, out.head_capacity) -
                    (core_.context.is_protected() ? packet::kMessageTagLength : 0);
    }
  }
  packet::MessageFragment header;
  header.kind = packet::FragmentKind::message;
  if (fragment == kCancelFragment) {
    header.kind = packet::FragmentKind::cancel;
  } else if (reply) {
    header.kind = message.refuse ? packet::FragmentKind::refuse : packet::FragmentKind::response;
  } else if (message.role == TransferRole::own_request) {
    header.kind = packet::FragmentKind::request;
  }
  header.slot = message.slot;
  header.code = message.code;
  header.sequence = message.sequence;
  header.order = message.order;
  if (fragment != kCancelFragment) {
    header.flags = message.flags;
    header.total = message.out_length;
    header.head = message.out_head;
    if (message.fragments > 1) {
      header.offset = fragment * message.fragment_bytes;
      header.fragment_bytes = message.fragment_bytes;
      header.head_follows = message.out_head != 0;
    }
  }
  packet::emit(header, out.head + out.head_length);
  out.head_length += packet::MessageFragment::kLength;
  if (payload == 0) return;

  std::uint32_t data = payload;
  const std::uint8_t* from = message.out + header.offset;
  if (header.head != 0) [[unlikely]] {
    if (header.head_follows) {
      packet::store_be16(out.head + out.head_length, header.head);
      out.head_length += packet::MessageFragment::kHeadLength;
      data -= packet::MessageFragment::kHeadLength;
    }
    const std::uint32_t head =
        header.offset < header.head ? write_head(message, header.offset, data, out.head + out.head_length) : 0;
    out.head_length += head;
    data -= head;
    if (data == 0) return;
    from = message.out + (header.offset + head - header.head);
  }
  const bool inline_bytes = message.out == message.bytes.data();
  const bool copied = core_.context.is_protected() || inline_bytes ||
                      (!message.out_device && data <= out.copy_up_to && out.head_length + data <= out.head_capacity);
  if (!copied) {
    out.payload = from;
    out.payload_length = data;
    out.payload_device = message.out_device;
    out.token = std::uint64_t{message.generation} << 32 | index;
    ++message.in_transport;
    return;
  }
  if (message.out_device) {
    core_.context.config.placer.copy(core_.context.config.placer.context, out.head + out.head_length, from, data);
  } else {
    std::memcpy(out.head + out.head_length, from, data);
    if (message.fragments > 1) prefetch_bytes<false>(from + data, std::min(data, kPrefetched));
  }
  out.head_length += data;
}

/// What of the message's head lies in this fragment. Returns how many bytes that is.
std::uint32_t PacketWriter::write_head(const Message& message, std::uint32_t offset, std::uint32_t payload,
                                       std::uint8_t* to) const {
  constexpr std::uint32_t kTimeLeft = packet::MessageFragment::kTimeLeft;
  const std::uint32_t length = std::min(payload, message.out_head - offset);
  std::uint32_t time = 0;
  if (offset == 0) {
    const bool timed = message.role == TransferRole::own_request && message.deadline != kNever;
    const std::int64_t left = message.deadline.value - core_.context.now().value;
    packet::store_be64(to, timed ? static_cast<std::uint64_t>(std::max<std::int64_t>(left, 1)) : 0);
    time = kTimeLeft;
  }
  const std::uint8_t* const metadata = core_.messages.head_of(message).out_metadata;
  if (length != time) std::memcpy(to + time, metadata + (offset + time - kTimeLeft), length - time);
  return length;
}

void PacketWriter::write_bare(Session& session, Outgoing& out, std::uint8_t flags) {
  const std::uint64_t number = recovery_.skip(session);
  const std::uint8_t* end = write_header(session, number, flags, 0, out.head);
  out.head_length = static_cast<std::uint32_t>(end - out.head);
  if (!core_.context.is_protected()) return;
  seal(session, number, out.head, out.head_length, 0);
  out.head_length += packet::kMessageTagLength;
}

void PacketWriter::write_path_check(Session& session, const packet::MessagePathCheck& check, Outgoing& out) {
  const std::uint64_t number = recovery_.skip(session);
  std::uint8_t* const end =
      write_header(session, number, packet::kMessageBundle, packet::MessagePathCheck::kLength, out.head);
  packet::emit(check, end);
  out.head_length = packet::MessageHeader::kLength + packet::MessagePathCheck::kLength;
  if (!core_.context.is_protected()) return;
  seal(session, number, out.head, packet::MessageHeader::kLength, packet::MessagePathCheck::kLength);
  out.head_length += packet::kMessageTagLength;
}

void PacketWriter::write_ping(Session& session, Outgoing& out) {
  session.ping = false;
  write_elicitor(session, packet::kMessagePing | packet::kMessagePrompt, nullptr, out);
}

void PacketWriter::write_path_probe(Session& session, std::uint32_t bytes, Outgoing& out) {
  core_.context.counters.path_probes.add(1);
  const std::uint64_t number = session.sent.next();
  SentPacket& packet = recovery_.add(session);
  packet.message = kNone;
  packet.fragment = kPathProbeFragment;
  packet.own = packet.large = false;
  recovery_.sent(session, packet, bytes);
  const std::uint32_t tag = core_.context.is_protected() ? packet::kMessageTagLength : 0;
  const std::uint32_t padding = bytes - packet::MessageHeader::kLength - tag;
  const std::uint8_t* const end =
      write_header(session, number, packet::kMessagePing | packet::kMessagePrompt, padding, out.head);
  out.head_length = static_cast<std::uint32_t>(end - out.head);
  if (core_.context.is_protected() || out.head_length + padding <= out.head_capacity) {
    std::memset(out.head + out.head_length, 0, padding);
    out.head_length += padding;
  } else {
    out.payload = kPadding.data();
    out.payload_length = padding;
  }
  if (!core_.context.is_protected()) return;
  seal(session, number, out.head, packet::MessageHeader::kLength, padding);
  out.head_length += tag;
}

void PacketWriter::write_busy(Session& session, Outgoing& out) {
  const BusyNotice& notice = session.busy[--session.busy_count];
  packet::MessageFragment fragment;
  fragment.kind = notice.response ? packet::FragmentKind::busy_response : packet::FragmentKind::busy;
  if (notice.refusal != 0) fragment.kind = packet::FragmentKind::refuse;
  fragment.code = notice.refusal;
  fragment.slot = notice.slot;
  fragment.sequence = notice.sequence;
  write_elicitor(session, packet::kMessageHasFragment, &fragment, out);
}

void PacketWriter::write_go_away(Session& session, Outgoing& out) {
  session.go_away_due = false;
  packet::MessageFragment fragment;
  fragment.kind = packet::FragmentKind::go_away;
  SentPacket& packet = write_elicitor(session, packet::kMessageHasFragment | packet::kMessagePrompt, &fragment, out);
  packet.fragment = kGoAwayFragment;
}

void PacketWriter::write_grant(Session& session, std::uint32_t index, Outgoing& out) {
  const Message& message = core_.messages[index];
  packet::MessageFragment fragment;
  fragment.kind =
      message.role == TransferRole::own_request ? packet::FragmentKind::grant_response : packet::FragmentKind::grant;
  fragment.slot = message.slot;
  fragment.sequence = message.sequence;
  fragment.offset = message.granted;
  fragment.total = message.in_length;
  SentPacket& packet = write_elicitor(session, packet::kMessageHasFragment, &fragment, out);
  packet.message = index;
  packet.generation = message.generation;
  packet.fragment = kGrantFragment;
}

/// A packet that wants an acknowledgement, but is not sent again if there is none.
SentPacket& PacketWriter::write_elicitor(Session& session, std::uint8_t flags, const packet::MessageFragment* fragment,
                                         Outgoing& out) {
  const std::uint64_t number = session.sent.next();
  SentPacket& packet = recovery_.add(session);
  packet.message = kNone;
  packet.fragment = 0;
  packet.own = packet.large = false;
  recovery_.sent(session, packet, packet_bytes(0));
  std::uint8_t* end = write_header(session, number, flags, 0, out.head);
  if (fragment != nullptr) {
    packet::emit(*fragment, end);
    end += packet::MessageFragment::kLength;
  }
  out.head_length = static_cast<std::uint32_t>(end - out.head);
  if (!core_.context.is_protected()) return packet;
  seal(session, number, out.head, out.head_length, 0);
  out.head_length += packet::kMessageTagLength;
  return packet;
}

}  // namespace warpline::message
