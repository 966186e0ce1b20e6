// SPDX-License-Identifier: Apache-2.0
#include "wireshark/message_packets.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "warpline/base/random.h"
#include "warpline/packet/message_header.h"

namespace warpline {
namespace {

using Payload = std::vector<std::uint8_t>;

/// A session's packet with whatever `header.flags` asks for.
Payload session_packet(MessageHeader header, const MessageFragment& fragment = {}) {
  const std::uint32_t before = header.length();
  Payload payload(before + header.payload_length + (header.has(kMessageProtected) ? kMessageTagLength : 0));
  emit(header, payload.data());
  std::uint8_t* at = payload.data() + MessageHeader::kLength;
  if (header.has(kMessageHasAck)) {
    emit(MessageAck{.cumulative = 0xfffffff0, .delay = 1500, .marked = 3, .room = 1 << 20}, at);
    for (std::uint32_t word = 0; word < header.ack_words; ++word) {
      store_be64(at + MessageAck::kLength + 8 * word, mix64(word));
    }
    at += header.ack_length();
  }
  if (header.has(kMessageHasFragment)) emit(fragment, at);
  for (std::size_t i = before; i < payload.size(); ++i) payload[i] = static_cast<std::uint8_t>(i);
  return payload;
}

template <typename Packet>
Payload packet(const Packet& fields) {
  Payload payload(Packet::kLength);
  emit(fields, payload.data());
  return payload;
}

template <typename Packet>
MessageParse verdict(const Payload& payload) {
  Packet fields;
  return parse(payload.data(), static_cast<std::uint32_t>(payload.size()), fields);
}

MessageParse fragments_verdict(const MessageHeader& header, const std::uint8_t* packet) {
  if (!header.has(kMessageHasFragment)) return MessageParse::ok;
  MessageFragment fragment;
  const std::uint8_t* at = packet + MessageHeader::kLength + header.ack_length();
  if (!header.has(kMessageBundle)) return parse(at, header.payload_length, fragment);
  std::uint32_t left = MessageFragment::kLength + header.payload_length;
  while (left != 0) {
    if (parse_bundled(at, left, fragment) != MessageParse::ok) return MessageParse::malformed;
    if (header.has(kMessageProtected)) break;
    at += MessageFragment::kLength + fragment.total;
    left -= MessageFragment::kLength + fragment.total;
  }
  return MessageParse::ok;
}

/// The first verdict that is not ok, of all packets in turn.
MessageParse session_verdict(std::span<const std::uint8_t> left) {
  MessageParse all = MessageParse::ok;
  const auto and_then = [&](MessageParse next) { all = all == MessageParse::ok ? next : all; };
  for (MessageHeader header;; left = left.subspan(header.packet_length())) {
    const auto length = static_cast<std::uint32_t>(left.size());
    const bool session = MessagePrefix::check(left.data(), length) == MessageParse::ok &&
                         MessagePrefix::type(left.data()) == MessagePacketType::session;
    const MessageParse answer = session ? parse(left.data(), length, header) : MessageParse::malformed;
    and_then(answer);
    if (answer != MessageParse::ok) return all;
    and_then(fragments_verdict(header, left.data()));
    if (!header.has(kMessageFollowed)) return all;
  }
}

MessageParse parse_any(const Payload& payload) {
  const MessageParse prefix = MessagePrefix::check(payload.data(), static_cast<std::uint32_t>(payload.size()));
  if (prefix != MessageParse::ok) return prefix;
  switch (MessagePrefix::type(payload.data())) {
    case MessagePacketType::hello:
      return verdict<MessageHello>(payload);
    case MessagePacketType::challenge:
      return verdict<MessageChallenge>(payload);
    case MessagePacketType::accept:
      return verdict<MessageAccept>(payload);
    case MessagePacketType::reject:
      return verdict<MessageReject>(payload);
    case MessagePacketType::reset:
      return verdict<MessageReset>(payload);
    case MessagePacketType::session:
      return session_verdict(payload);
  }
  return MessageParse::type;
}

}  // namespace

std::vector<Payload> message_packets() {
  constexpr std::uint32_t kSession = 0x01020304;
  constexpr std::uint64_t kNonce = 0x1122334455667788;
  constexpr std::uint64_t kCookie = 0x8877665544332211;
  const MessageTerms terms{.datagram_bytes = 1472, .room = 1 << 20, .max_ack_delay = 25'000};
  const MessageTerms all_terms{.datagram_bytes = 65507,
                               .go_back_n = true,
                               .ordered = true,
                               .is_protected = true,
                               .grants = true,
                               .room = 0xffffffff,
                               .max_ack_delay = 0xffffffff};
  std::vector<Payload> packets = {
      packet(MessageHello{.session = kSession, .nonce = kNonce, .terms = terms}),
      packet(MessageHello{.session = kSession, .nonce = kNonce, .token = 7, .token_time = 9, .terms = all_terms}),
      packet(MessageChallenge{.session = kSession, .nonce = kNonce, .token = 7, .token_time = 9}),
      packet(MessageAccept{.session = kSession,
                           .nonce = kNonce,
                           .cookie = kCookie,
                           .server_nonce = ~kNonce,
                           .server_session = ~kSession,
                           .terms = terms}),
      packet(MessageAccept{.session = kSession, .nonce = kNonce, .cookie = kCookie, .terms = all_terms}),
      packet(MessageReset{.session = kSession, .cookie = kCookie}),
  };
  using Reason = MessageReject::Reason;
  for (const Reason reason : {Reason::full, Reason::version, Reason::not_accepting, Reason::terms}) {
    packets.push_back(packet(MessageReject{.session = kSession, .nonce = kNonce, .reason = reason}));
  }

  const MessageHeader bare{.session = kSession, .cookie = kCookie, .packet_number = 0x123456789a, .floor_distance = 26};
  for (std::uint8_t flags = 0; flags < kMessageFollowed; ++flags) {
    MessageHeader header = bare;
    header.flags = flags;
    if (header.has(kMessageBundle) && !header.has(kMessageHasFragment)) continue;
    if (header.has(kMessageHasFragment)) header.payload_length = 32;
    if (header.has(kMessageHasAck)) header.ack_words = flags % 4;
    packets.push_back(session_packet(header, {.slot = 63, .code = 9, .sequence = 17, .total = 32, .order = 5}));
  }
  for (const FragmentKind kind :
       {FragmentKind::request, FragmentKind::response, FragmentKind::message, FragmentKind::cancel,
        FragmentKind::refuse, FragmentKind::busy, FragmentKind::grant, FragmentKind::grant_response}) {
    MessageHeader header = bare;
    header.flags = kMessageHasFragment;
    packets.push_back(session_packet(header, {.kind = kind, .code = 1}));
    header.payload_length = 1408;
    packets.push_back(
        session_packet(header, {.kind = kind, .more = true, .code = 2, .offset = 1408, .total = 1 << 24}));
  }
  MessageHeader extreme = bare;
  extreme.packet_number = ~std::uint64_t{0};
  extreme.floor_distance = 0xffff;
  extreme.flags = kMessageHasAck;
  extreme.ack_words = kMaxAckWords;
  packets.push_back(session_packet(extreme));
  extreme.packet_number = extreme.floor_distance = 0;
  packets.push_back(session_packet(extreme));

  MessageHeader bundle = bare;
  bundle.flags = kMessageHasFragment | kMessageBundle;
  const std::vector<MessageFragment> along = {{.kind = FragmentKind::response, .slot = 3, .total = 100},
                                              {.kind = FragmentKind::message, .more = true, .slot = 4},
                                              {.kind = FragmentKind::refuse, .slot = 5, .code = 1}};
  bundle.payload_length = 7;
  for (const MessageFragment& fragment : along) bundle.payload_length += MessageFragment::kLength + fragment.total;
  Payload payload = session_packet(bundle, {.kind = FragmentKind::request, .total = 7});
  std::uint8_t* at = payload.data() + bundle.length() + 7;
  for (const MessageFragment& fragment : along) {
    emit(fragment, at);
    at += MessageFragment::kLength + fragment.total;
  }
  packets.push_back(payload);

  // Packets of three sessions in one datagram.
  MessageHeader followed = bare;
  followed.flags = kMessageHasFragment | kMessageHasAck | kMessageFollowed;
  followed.ack_words = 1;
  followed.payload_length = 32;
  Payload several = session_packet(followed, {.slot = 1, .sequence = 3, .total = 32});
  followed.session = ~kSession;
  followed.flags = kMessageHasAck | kMessageFollowed;
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
