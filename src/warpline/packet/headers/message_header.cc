// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/message_header.h"

#include <fmt/core.h>

#include <algorithm>

namespace warpline::packet {
namespace {

constexpr std::uint8_t kGoBackN = 0x01;
constexpr std::uint8_t kOrdered = 0x02;
constexpr std::uint8_t kProtected = 0x04;
constexpr std::uint8_t kGrants = 0x08;
constexpr std::uint8_t kBundles = 0x10;

/// Twelve bytes: 2 datagram, 1 reliability and options, 1 zero, 4 room, 4 delay.
void store_terms(const MessageTerms& terms, std::uint8_t* bytes) {
  store_be16(bytes, terms.datagram_bytes);
  bytes[2] = static_cast<std::uint8_t>((terms.go_back_n ? kGoBackN : 0) | (terms.ordered ? kOrdered : 0) |
                                       (terms.is_protected ? kProtected : 0) | (terms.grants ? kGrants : 0) |
                                       (terms.bundles ? kBundles : 0));
  bytes[3] = 0;
  store_be32(bytes + 4, terms.room);
  store_be32(bytes + 8, terms.max_ack_delay);
}

bool load_terms(const std::uint8_t* bytes, MessageTerms& terms) {
  terms.datagram_bytes = load_be16(bytes);
  terms.go_back_n = (bytes[2] & kGoBackN) != 0;
  terms.ordered = (bytes[2] & kOrdered) != 0;
  terms.is_protected = (bytes[2] & kProtected) != 0;
  terms.grants = (bytes[2] & kGrants) != 0;
  terms.bundles = (bytes[2] & kBundles) != 0;
  terms.room = load_be32(bytes + 4);
  terms.max_ack_delay = load_be32(bytes + 8);
  return (bytes[2] & ~(kGoBackN | kOrdered | kProtected | kGrants | kBundles)) == 0 && bytes[3] == 0;
}

/// Flags and words, which only a session's packets have.
bool plain(const std::uint8_t* bytes) { return bytes[2] == 0 && bytes[3] == 0; }

bool zero(const std::uint8_t* bytes, std::uint32_t n) {
  return std::all_of(bytes, bytes + n, [](std::uint8_t byte) { return byte == 0; });
}

MessageParse verdict(bool well_formed) { return well_formed ? MessageParse::ok : MessageParse::malformed; }

}  // namespace

MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageHello& hello) {
  if (length < MessageHello::kLength) return MessageParse::truncated;
  hello.session = load_be32(bytes + 4);
  hello.nonce = load_be64(bytes + 8);
  hello.token = load_be64(bytes + 16);
  hello.token_time = load_be32(bytes + 24);
  if (!plain(bytes) || !load_terms(bytes + 28, hello.terms)) return MessageParse::malformed;
  if (length < hello.length()) return MessageParse::truncated;
  if (!hello.terms.is_protected) return verdict(length == hello.length() && zero(bytes + 40, length - 40));
  hello.key = load_be64(bytes + 40);
  std::copy_n(bytes + 48, hello.share.size(), hello.share.begin());
  std::copy_n(bytes + MessageHello::kProven, hello.proof.size(), hello.proof.begin());
  return verdict(length == hello.length());
}

void emit(const MessageHello& hello, std::uint8_t* bytes) {
  MessagePrefix::store(bytes, MessagePacketType::hello, 0, 0);
  store_be32(bytes + 4, hello.session);
  store_be64(bytes + 8, hello.nonce);
  store_be64(bytes + 16, hello.token);
  store_be32(bytes + 24, hello.token_time);
  store_terms(hello.terms, bytes + 28);
  if (!hello.terms.is_protected) {
    std::fill(bytes + 40, bytes + hello.length(), std::uint8_t{0});
    return;
  }
  store_be64(bytes + 40, hello.key);
  std::copy(hello.share.begin(), hello.share.end(), bytes + 48);
  std::copy(hello.proof.begin(), hello.proof.end(), bytes + MessageHello::kProven);
}

MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageChallenge& challenge) {
  if (length < MessageChallenge::kLength) return MessageParse::truncated;
  challenge.session = load_be32(bytes + 4);
  challenge.nonce = load_be64(bytes + 8);
  challenge.token = load_be64(bytes + 16);
  challenge.token_time = load_be32(bytes + 24);
  return verdict(length == MessageChallenge::kLength && plain(bytes) && zero(bytes + 28, 4));
}

void emit(const MessageChallenge& challenge, std::uint8_t* bytes) {
  MessagePrefix::store(bytes, MessagePacketType::challenge, 0, 0);
  store_be32(bytes + 4, challenge.session);
  store_be64(bytes + 8, challenge.nonce);
  store_be64(bytes + 16, challenge.token);
  store_be32(bytes + 24, challenge.token_time);
  store_be32(bytes + 28, 0);
}

MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageAccept& accept) {
  if (length < MessageAccept::kLength) return MessageParse::truncated;
  accept.session = load_be32(bytes + 4);
  accept.nonce = load_be64(bytes + 8);
  accept.cookie = load_be64(bytes + 16);
  accept.server_nonce = load_be64(bytes + 24);
  accept.server_session = load_be32(bytes + 32);
  if (!plain(bytes) || !load_terms(bytes + 36, accept.terms)) return MessageParse::malformed;
  if (length < accept.length()) return MessageParse::truncated;
  if (!accept.terms.is_protected) return verdict(length == accept.length() && zero(bytes + 48, length - 48));
  std::copy_n(bytes + 48, accept.share.size(), accept.share.begin());
  std::copy_n(bytes + MessageAccept::kProven, accept.proof.size(), accept.proof.begin());
  return verdict(length == accept.length());
}

void emit(const MessageAccept& accept, std::uint8_t* bytes) {
  MessagePrefix::store(bytes, MessagePacketType::accept, 0, 0);
  store_be32(bytes + 4, accept.session);
  store_be64(bytes + 8, accept.nonce);
  store_be64(bytes + 16, accept.cookie);
  store_be64(bytes + 24, accept.server_nonce);
  store_be32(bytes + 32, accept.server_session);
  store_terms(accept.terms, bytes + 36);
  if (!accept.terms.is_protected) {
    std::fill(bytes + 48, bytes + accept.length(), std::uint8_t{0});
    return;
  }
  std::copy(accept.share.begin(), accept.share.end(), bytes + 48);
  std::copy(accept.proof.begin(), accept.proof.end(), bytes + MessageAccept::kProven);
}

MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageReject& reject) {
  if (length < MessageReject::kLength) return MessageParse::truncated;
  reject.session = load_be32(bytes + 4);
  reject.nonce = load_be64(bytes + 8);
  const std::uint16_t reason = load_be16(bytes + 16);
  reject.reason = static_cast<MessageReject::Reason>(reason);
  reject.version = MessagePrefix::version(bytes);
  return verdict(length == MessageReject::kLength && plain(bytes) && reason >= 1 && reason <= 4 && zero(bytes + 18, 2));
}

void emit(const MessageReject& reject, std::uint8_t* bytes) {
  MessagePrefix::store(bytes, MessagePacketType::reject, 0, 0);
  bytes[1] = static_cast<std::uint8_t>(reject.version << 4 | (bytes[1] & 15));
  store_be32(bytes + 4, reject.session);
  store_be64(bytes + 8, reject.nonce);
  store_be16(bytes + 16, static_cast<std::uint16_t>(reject.reason));
  store_be16(bytes + 18, 0);
}

MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageReset& reset) {
  if (length < MessageReset::kLength) return MessageParse::truncated;
  reset.session = load_be32(bytes + 4);
  reset.cookie = load_be64(bytes + 8);
  return verdict(length == MessageReset::kLength && plain(bytes));
}

void emit(const MessageReset& reset, std::uint8_t* bytes) {
  MessagePrefix::store(bytes, MessagePacketType::reset, 0, 0);
  store_be32(bytes + 4, reset.session);
  store_be64(bytes + 8, reset.cookie);
}

std::string_view name(MessagePacketType type) {
  constexpr std::string_view kNames[] = {"hello", "challenge", "accept", "reject", "session", "reset"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view name(FragmentKind kind) {
  constexpr std::string_view kNames[] = {"",     "request", "response",       "message",       "cancel", "refuse",
                                         "busy", "grant",   "grant response", "busy response", "go away"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

std::string describe(const MessageFragment& fragment, std::uint32_t length) {
  if (fragment.head_follows) length -= MessageFragment::kHeadLength;
  return fmt::format(" {}{} slot {}.{} [{}+{} of {}]", name(fragment.kind),
                     fragment.has(MessageFragment::kStream) ? " of a stream" : "", fragment.slot, fragment.sequence,
                     fragment.offset, length, fragment.total);
}

/// Those that are well-formed, up to the first that is not. Encrypted ones are not looked at.
std::string describe_fragments(const MessageHeader& header, const std::uint8_t* at) {
  std::string text;
  MessageFragment fragment;
  if (!header.has(kMessageBundle)) {
    return parse(at, header.payload_length, fragment) == MessageParse::ok ? describe(fragment, header.payload_length)
                                                                          : text;
  }
  const std::uint8_t* const end = at + MessageFragment::kLength + header.payload_length;
  while (at != end && parse_bundled(at, static_cast<std::uint32_t>(end - at), fragment) == MessageParse::ok) {
    text += describe(fragment, fragment.total);
    at += MessageFragment::kLength + fragment.total;
    if (header.has(kMessageProtected)) break;
  }
  return text;
}

/// An encrypted one is not looked at.
std::string_view describe_path_check(const MessageHeader& header, const std::uint8_t* at) {
  MessagePathCheck check;
  if (header.has(kMessageProtected) || parse(at, check) != MessageParse::ok) return " path";
  return check.kind == MessagePathCheck::Kind::challenge ? " path challenge" : " path response";
}

std::string describe(const MessageHeader& header, const std::uint8_t* bytes) {
  std::string text = fmt::format("session {:#x} #{} floor #{}", header.session, header.packet_number, header.floor());
  const std::uint8_t* at = bytes + MessageHeader::kLength;
  if (header.has(kMessageHasAck)) {
    const MessageAck ack = load_ack(at);
    text += fmt::format(" ack<{} words {} room {}", ack.cumulative, header.ack_words, ack.room);
  }
  if (header.has(kMessageHasFragment)) text += describe_fragments(header, at + header.ack_length());
  if (header.has(kMessagePrompt)) text += " prompt";
  if (header.has(kMessagePing)) text += " ping";
  if (header.checks_path()) {
    text += describe_path_check(header, at);
  } else if (!header.has(kMessageHasFragment) && header.payload_length != 0) {
    text += fmt::format(" padding {}", header.payload_length);
  }
  if (header.has(kMessageClose)) text += " close";
  if (header.has(kMessageProtected)) text += " protected";
  return text;
}

bool is_session(const std::uint8_t* bytes, std::uint32_t length) {
  return MessagePrefix::check(bytes, length) == MessageParse::ok &&
         MessagePrefix::type(bytes) == MessagePacketType::session;
}

}  // namespace

std::string describe_message(const std::uint8_t* bytes, std::uint32_t length) {
  if (MessagePrefix::check(bytes, length) != MessageParse::ok) return fmt::format("{} bytes, not of a session", length);
  const MessagePacketType type = MessagePrefix::type(bytes);
  if (type != MessagePacketType::session) return fmt::format("{}, {} bytes", name(type), length);
  std::string text;
  for (MessageHeader header;; bytes += header.packet_length(), length -= header.packet_length(), text += " + ") {
    if (!is_session(bytes, length) || parse(bytes, length, header) != MessageParse::ok) {
      return text + fmt::format("malformed, {} bytes", length);
    }
    text += describe(header, bytes);
    if (!header.has(kMessageFollowed)) return text;
  }
}

}  // namespace warpline::packet
