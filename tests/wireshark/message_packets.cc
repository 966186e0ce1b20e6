// SPDX-License-Identifier: Apache-2.0
#include "wireshark/message_packets.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "warpline/base/random.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline {
namespace {

using Payload = std::vector<std::uint8_t>;

/// A session's packet with whatever `header.flags` asks for.
Payload session_packet(packet::MessageHeader header, const packet::MessageFragment& fragment = {}) {
  const std::uint32_t before = header.length();
  Payload payload(before + header.payload_length +
                  (header.has(packet::kMessageProtected) ? packet::kMessageTagLength : 0));
  packet::emit(header, payload.data());
  std::uint8_t* at = payload.data() + packet::MessageHeader::kLength;
  if (header.has(packet::kMessageHasAck)) {
    packet::emit(packet::MessageAck{.cumulative = 0xfffffff0, .delay = 1500, .marked = 3, .room = 1 << 20}, at);
    for (std::uint32_t word = 0; word < header.ack_words; ++word) {
      packet::store_be64(at + packet::MessageAck::kLength + 8 * word, mix64(word));
    }
    at += header.ack_length();
  }
  if (header.has(packet::kMessageHasFragment)) packet::emit(fragment, at);
  for (std::size_t i = before; i < payload.size(); ++i) payload[i] = static_cast<std::uint8_t>(i);
  return payload;
}

template <typename Packet>
Payload payload_of(const Packet& fields) {
  Payload payload(Packet::kLength);
  if constexpr (requires { fields.length(); }) payload.resize(fields.length());
  packet::emit(fields, payload.data());
  return payload;
}

template <typename Packet>
packet::MessageParse verdict(const Payload& payload) {
  Packet fields;
  return packet::parse(payload.data(), static_cast<std::uint32_t>(payload.size()), fields);
}

packet::MessageParse fragments_verdict(const packet::MessageHeader& header, const std::uint8_t* packet) {
  if (header.checks_path()) {
    packet::MessagePathCheck check;
    return header.has(packet::kMessageProtected) ? packet::MessageParse::ok
                                                 : packet::parse(packet + packet::MessageHeader::kLength, check);
  }
  if (!header.has(packet::kMessageHasFragment)) return packet::MessageParse::ok;
  packet::MessageFragment fragment;
  const std::uint8_t* at = packet + packet::MessageHeader::kLength + header.ack_length();
  if (!header.has(packet::kMessageBundle)) return packet::parse(at, header.payload_length, fragment);
  std::uint32_t left = packet::MessageFragment::kLength + header.payload_length;
  while (left != 0) {
    if (packet::parse_bundled(at, left, fragment) != packet::MessageParse::ok) return packet::MessageParse::malformed;
    if (header.has(packet::kMessageProtected)) break;
    at += packet::MessageFragment::kLength + fragment.total;
    left -= packet::MessageFragment::kLength + fragment.total;
  }
  return packet::MessageParse::ok;
}

/// The first verdict that is not ok, of all packets in turn.
packet::MessageParse session_verdict(std::span<const std::uint8_t> left) {
  packet::MessageParse all = packet::MessageParse::ok;
  const auto and_then = [&](packet::MessageParse next) { all = all == packet::MessageParse::ok ? next : all; };
  for (packet::MessageHeader header;; left = left.subspan(header.packet_length())) {
    const auto length = static_cast<std::uint32_t>(left.size());
    const bool session = packet::MessagePrefix::check(left.data(), length) == packet::MessageParse::ok &&
                         packet::MessagePrefix::type(left.data()) == packet::MessagePacketType::session;
    const packet::MessageParse answer =
        session ? packet::parse(left.data(), length, header) : packet::MessageParse::malformed;
    and_then(answer);
    if (answer != packet::MessageParse::ok) return all;
    and_then(fragments_verdict(header, left.data()));
    if (!header.has(packet::kMessageFollowed)) return all;
  }
}

packet::MessageParse parse_any(const Payload& payload) {
  const packet::MessageParse prefix =
      packet::MessagePrefix::check(payload.data(), static_cast<std::uint32_t>(payload.size()));
  if (prefix != packet::MessageParse::ok) return prefix;
  switch (packet::MessagePrefix::type(payload.data())) {
    case packet::MessagePacketType::hello:
      return verdict<packet::MessageHello>(payload);
    case packet::MessagePacketType::challenge:
      return verdict<packet::MessageChallenge>(payload);
    case packet::MessagePacketType::accept:
      return verdict<packet::MessageAccept>(payload);
    case packet::MessagePacketType::reject:
      return verdict<packet::MessageReject>(payload);
    case packet::MessagePacketType::reset:
      return verdict<packet::MessageReset>(payload);
    case packet::MessagePacketType::session:
      return session_verdict(payload);
  }
  return packet::MessageParse::type;
}

}  // namespace

std::vector<Payload> message_packets() {
  constexpr std::uint32_t kSession = 0x01020304;
  constexpr std::uint64_t kNonce = 0x1122334455667788;
  constexpr std::uint64_t kCookie = 0x8877665544332211;
  const packet::MessageTerms terms{.datagram_bytes = 1472, .room = 1 << 20, .max_ack_delay = 25'000};
  const packet::MessageTerms all_terms{.datagram_bytes = 65507,
                                       .go_back_n = true,
                                       .ordered = true,
                                       .is_protected = true,
                                       .grants = true,
                                       .room = 0xffffffff,
                                       .max_ack_delay = 0xffffffff};
  packet::MessageKeyShare share;
  share.fill(0x5a);
  std::vector<Payload> packets = {
      payload_of(packet::MessageHello{.session = kSession, .nonce = kNonce, .terms = terms}),
      payload_of(packet::MessageHello{.session = kSession,
                                      .nonce = kNonce,
                                      .token = 7,
                                      .token_time = 9,
                                      .terms = all_terms,
                                      .key = 0x99aabbccddeeff00,
                                      .share = share}),
      payload_of(packet::MessageChallenge{.session = kSession, .nonce = kNonce, .token = 7, .token_time = 9}),
      payload_of(packet::MessageAccept{.session = kSession,
                                       .nonce = kNonce,
                                       .cookie = kCookie,
                                       .server_nonce = ~kNonce,
                                       .server_session = ~kSession,
                                       .terms = terms}),
      payload_of(packet::MessageAccept{
          .session = kSession, .nonce = kNonce, .cookie = kCookie, .terms = all_terms, .share = share}),
      payload_of(packet::MessageReset{.session = kSession, .cookie = kCookie}),
  };
  using Reason = packet::MessageReject::Reason;
  for (const Reason reason : {Reason::full, Reason::version, Reason::not_accepting, Reason::terms}) {
    packets.push_back(payload_of(packet::MessageReject{.session = kSession, .nonce = kNonce, .reason = reason}));
  }

  const packet::MessageHeader bare{
      .session = kSession, .cookie = kCookie, .packet_number = 0x123456789a, .floor_distance = 26};
  for (std::uint8_t flags = 0; flags < packet::kMessageFollowed; ++flags) {
    packet::MessageHeader header = bare;
    header.flags = flags;
    if (header.has(packet::kMessageBundle) && !header.has(packet::kMessageHasFragment)) continue;
    if (header.has(packet::kMessageHasFragment)) header.payload_length = 32;
    if (header.has(packet::kMessageHasAck)) header.ack_words = flags % 4;
    packets.push_back(session_packet(header, {.slot = 63, .code = 9, .sequence = 17, .total = 32, .order = 5}));
  }
  for (const packet::FragmentKind kind :
       {packet::FragmentKind::request, packet::FragmentKind::response, packet::FragmentKind::message,
        packet::FragmentKind::cancel, packet::FragmentKind::refuse, packet::FragmentKind::busy,
        packet::FragmentKind::grant, packet::FragmentKind::grant_response, packet::FragmentKind::busy_response,
        packet::FragmentKind::go_away}) {
    packet::MessageHeader header = bare;
    header.flags = packet::kMessageHasFragment;
    packets.push_back(session_packet(header, {.kind = kind, .code = 1}));
    header.payload_length = 1408;
    packets.push_back(session_packet(header, {.kind = kind,
                                              .flags = packet::MessageFragment::kMore,
                                              .code = 2,
                                              .offset = 1408,
                                              .total = 1 << 24,
                                              .fragment_bytes = 1408}));
  }
  for (const std::uint8_t flags : {0, static_cast<int>(packet::kMessageProtected)}) {
    packet::MessageHeader probe = bare;
    probe.flags = packet::kMessagePing | packet::kMessagePrompt | flags;
    probe.payload_length = 1444;
    packets.push_back(session_packet(probe));
  }
  for (const packet::MessagePathCheck::Kind kind :
       {packet::MessagePathCheck::Kind::challenge, packet::MessagePathCheck::Kind::response}) {
    for (const std::uint8_t flags : {0, static_cast<int>(packet::kMessageProtected)}) {
      packet::MessageHeader header = bare;
      header.flags = packet::kMessageBundle | flags;
      header.payload_length = packet::MessagePathCheck::kLength;
      Payload check = session_packet(header);
      packet::emit(packet::MessagePathCheck{.kind = kind, .time = 9, .token = 0x7766554433221100},
                   check.data() + packet::MessageHeader::kLength);
      packets.push_back(std::move(check));
    }
  }
  for (const packet::FragmentKind kind :
       {packet::FragmentKind::request, packet::FragmentKind::response, packet::FragmentKind::message}) {
    packet::MessageHeader header = bare;
    header.flags = packet::kMessageHasFragment;
    header.payload_length = 40;
    for (const std::uint16_t head : {8, 40})
      packets.push_back(session_packet(header, {.kind = kind, .total = 40, .head = head}));
    header.payload_length = 1408;
    for (const std::uint32_t offset : {0, 1406}) {
      packets.push_back(session_packet(
          header, {.kind = kind, .offset = offset, .total = 1 << 16, .fragment_bytes = 1406, .head_follows = true}));
    }
  }
  for (const packet::FragmentKind kind :
       {packet::FragmentKind::request, packet::FragmentKind::response, packet::FragmentKind::message}) {
    packet::MessageHeader header = bare;
    header.flags = packet::kMessageHasFragment;
    for (const std::uint16_t head : {0, 8, 12}) {
      const std::uint32_t length = packet::MessageStreamHead::kLength + head;
      header.payload_length = static_cast<std::uint16_t>(length);
      Payload piece = session_packet(
          header, {.kind = kind, .flags = packet::MessageFragment::kStream, .total = length, .head = head});
      packet::emit(packet::MessageStreamHead{.to = 0x1001, .from = 0x2002, .number = 77, .credit = 65536},
                   piece.data() + piece.size() - packet::MessageStreamHead::kLength);
      packets.push_back(std::move(piece));
    }
  }
  for (const packet::FragmentKind kind :
       {packet::FragmentKind::request, packet::FragmentKind::response, packet::FragmentKind::message}) {
    packet::MessageHeader header = bare;
    header.flags = packet::kMessageHasFragment;
    header.payload_length = 20;
    packets.push_back(session_packet(header, {.kind = kind, .flags = packet::MessageFragment::kHigh, .total = 20}));
  }
  packet::MessageHeader extreme = bare;
  extreme.packet_number = ~std::uint64_t{0};
  extreme.floor_distance = 0xffff;
  extreme.flags = packet::kMessageHasAck;
  extreme.ack_words = packet::kMaxAckWords;
  packets.push_back(session_packet(extreme));
  extreme.packet_number = extreme.floor_distance = 0;
  packets.push_back(session_packet(extreme));

  packet::MessageHeader bundle = bare;
  bundle.flags = packet::kMessageHasFragment | packet::kMessageBundle;
  const std::vector<packet::MessageFragment> along = {
      {.kind = packet::FragmentKind::response, .slot = 3, .total = 100},
      {.kind = packet::FragmentKind::message, .flags = packet::MessageFragment::kMore, .slot = 4},
      {.kind = packet::FragmentKind::refuse, .slot = 5, .code = 1}};
  bundle.payload_length = 7;
  for (const packet::MessageFragment& fragment : along)
    bundle.payload_length += packet::MessageFragment::kLength + fragment.total;
  Payload payload = session_packet(bundle, {.kind = packet::FragmentKind::request, .total = 7});
  std::uint8_t* at = payload.data() + bundle.length() + 7;
  for (const packet::MessageFragment& fragment : along) {
    packet::emit(fragment, at);
    at += packet::MessageFragment::kLength + fragment.total;
  }
  packets.push_back(payload);

  // Packets of three sessions in one datagram.
  packet::MessageHeader followed = bare;
  followed.flags = packet::kMessageHasFragment | packet::kMessageHasAck | packet::kMessageFollowed;
  followed.ack_words = 1;
  followed.payload_length = 32;
  Payload several = session_packet(followed, {.slot = 1, .sequence = 3, .total = 32});
  followed.session = ~kSession;
  followed.flags = packet::kMessageHasAck | packet::kMessageFollowed;
  followed.payload_length = 0;
  for (const Payload& next : {session_packet(followed), payload})
    several.insert(several.end(), next.begin(), next.end());
  packets.push_back(std::move(several));
  return packets;
}

std::vector<Payload> damaged_message_packets(std::uint64_t seed, int each) {
  Random random(seed);
  std::vector<Payload> damaged;
  for (const Payload& packet : message_packets()) {
    for (int i = 0; i < each; ++i) {
      Payload payload = packet;
      switch (random.below(4)) {
        case 0:  // most of what is read lies at the front
          payload[random.below(std::min<std::size_t>(payload.size(), 64))] = static_cast<std::uint8_t>(random.next());
          break;
        case 1:
          payload.resize(1 + random.below(payload.size()));
          break;
        case 2:
          payload.resize(payload.size() + 1 + random.below(32));
          break;
        default:
          std::generate(payload.begin() + static_cast<std::ptrdiff_t>(random.below(5)), payload.end(),
                        [&] { return static_cast<std::uint8_t>(random.next()); });
      }
      damaged.push_back(std::move(payload));
    }
  }
  return damaged;
}

std::string_view verdict_of_message(const Payload& payload) {
  constexpr std::string_view kNames[] = {"ok", "truncated", "not_ours", "version", "type", "malformed"};
  return kNames[static_cast<std::size_t>(parse_any(payload))];
}

}  // namespace warpline
