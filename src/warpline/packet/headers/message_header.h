// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "warpline/base/host_device.h"
#include "warpline/packet/byte_order.h"

namespace warpline::packet {

// The packets of message/, each a UDP payload; docs/message_format.md has them byte by byte. All numbers are
// big-endian.

inline constexpr std::uint8_t kMessageMagic = 0x57;  ///< first byte of every packet
inline constexpr std::uint8_t kMessageVersion = 2;   ///< upper half of the second

/// Lower half of the second byte: what a packet is.
enum class MessagePacketType : std::uint8_t {
  hello,      ///< asks for a session
  challenge,  ///< asks for a proof of the address
  accept,     ///< the session is there
  reject,     ///< it will not be
  session,    ///< acknowledgements and messages of a session
  reset,      ///< the session of a packet is not there
};

/// What parse() makes of a UDP payload.
enum class MessageParse : std::uint8_t {
  ok,         ///< well formed
  truncated,  ///< ends too early
  not_ours,   ///< its first byte is not kMessageMagic
  version,    ///< not kMessageVersion
  type,       ///< no MessagePacketType
  malformed,  ///< lengths or fields that contradict each other
};

/// Bytes 0 and 1 of every packet, which say what the others mean.
struct MessagePrefix {
  static constexpr std::uint32_t kLength = 4;  ///< bytes that check() needs

  /// `length`: bytes of the whole UDP payload.
  [[nodiscard]] WARPLINE_HD static constexpr MessageParse check(const std::uint8_t* bytes, std::uint32_t length) {
    if (length < kLength) return MessageParse::truncated;
    if (bytes[0] != kMessageMagic) return MessageParse::not_ours;
    if (version(bytes) != kMessageVersion) return MessageParse::version;
    return (bytes[1] & 15) <= static_cast<std::uint8_t>(MessagePacketType::reset) ? MessageParse::ok
                                                                                  : MessageParse::type;
  }
  /// The version of a packet that is ours.
  [[nodiscard]] WARPLINE_HD static constexpr std::uint8_t version(const std::uint8_t* bytes) { return bytes[1] >> 4; }
  /// The packet's type. After check().
  [[nodiscard]] WARPLINE_HD static constexpr MessagePacketType type(const std::uint8_t* bytes) {
    return static_cast<MessagePacketType>(bytes[1] & 15);
  }
  /// Writes kLength bytes. `flags` and `words` are those of a session's packet.
  WARPLINE_HD static constexpr void store(std::uint8_t* bytes, MessagePacketType type, std::uint8_t flags,
                                          std::uint8_t words) {
    bytes[0] = kMessageMagic;
    bytes[1] = static_cast<std::uint8_t>(kMessageVersion << 4 | static_cast<std::uint8_t>(type));
    bytes[2] = flags;
    bytes[3] = words;
  }
};

/// What an end of a session says about itself in hello and accept.
struct MessageTerms {
  std::uint16_t datagram_bytes = 0;  ///< the most UDP payload that it takes
  bool go_back_n = false;            ///< Reliability::go_back_n
  bool ordered = false;              ///< SessionOptions::ordered
  bool is_protected = false;         ///< it encrypts the session's packets
  bool grants = false;               ///< of long messages it takes the first fragment, the others as it grants them
  bool bundles = false;              ///< it takes several small messages in one packet
  std::uint32_t room = 0;            ///< bytes that it takes of messages before the first acknowledgement
  std::uint32_t max_ack_delay = 0;   ///< nanoseconds
  bool operator==(const MessageTerms&) const = default;
};

/// What only who has the key can make of the bytes of a handshake packet that precede it; zeros without a key.
using MessageProof = std::array<std::uint8_t, 16>;
/// The public half of a key pair of X25519 (RFC 7748), drawn for one handshake.
using MessageKeyShare = std::array<std::uint8_t, 32>;

/// Opens a session, first without a token, then with the challenge's and the proof. Key, share and proof are there if
/// the terms say protected.
struct MessageHello {
  static constexpr std::uint32_t kLength = 64;           ///< no shorter than what it is answered with
  static constexpr std::uint32_t kProtectedLength = 96;  ///< the same, with key, share and proof
  static constexpr std::uint32_t kProven = 80;           ///< bytes that precede the proof
  std::uint32_t session = 0;                             ///< of the sender
  std::uint64_t nonce = 0;                               ///< drawn for this opening
  std::uint64_t token = 0;                               ///< 0: none yet
  std::uint32_t token_time = 0;                          ///< as the challenge had it
  MessageTerms terms;                                    ///< of the sender
  std::uint64_t key = 0;                                 ///< id of the key that both ends were given
  MessageKeyShare share{};                               ///< the sender's
  MessageProof proof{};                                  ///< of what precedes it; of the first hello zeros

  /// Bytes of the packet.
  [[nodiscard]] constexpr std::uint32_t length() const { return terms.is_protected ? kProtectedLength : kLength; }
  bool operator==(const MessageHello&) const = default;
};

/// The answer to a hello without a valid token. Its sender keeps nothing.
struct MessageChallenge {
  static constexpr std::uint32_t kLength = 32;  ///< bytes
  std::uint32_t session = 0;                    ///< of the receiver, as all below
  std::uint64_t nonce = 0;                      ///< of the hello
  std::uint64_t token = 0;                      ///< to be sent back: proves the address
  std::uint32_t token_time = 0;                 ///< to be sent back: when the token was made
  bool operator==(const MessageChallenge&) const = default;
};

/// The answer to a hello with a valid token: the session is there. Share and proof are there if the terms say
/// protected.
struct MessageAccept {
  static constexpr std::uint32_t kLength = 64;           ///< bytes
  static constexpr std::uint32_t kProtectedLength = 96;  ///< the same, with share and proof
  static constexpr std::uint32_t kProven = 80;           ///< bytes that precede the proof
  std::uint32_t session = 0;                             ///< of the receiver
  std::uint64_t nonce = 0;                               ///< of the hello
  std::uint64_t cookie = 0;                              ///< in every packet of the session from here on
  std::uint64_t server_nonce = 0;                        ///< drawn by the sender of this
  std::uint32_t server_session = 0;                      ///< of the sender of this
  MessageTerms terms;                                    ///< of the sender
  MessageKeyShare share{};                               ///< the sender's
  MessageProof proof{};                                  ///< of the whole handshake

  /// Bytes of the packet.
  [[nodiscard]] constexpr std::uint32_t length() const { return terms.is_protected ? kProtectedLength : kLength; }
  bool operator==(const MessageAccept&) const = default;
};

/// The answer to a hello that opens no session. It is laid out so in all versions, and a hello up to its nonce.
struct MessageReject {
  static constexpr std::uint32_t kLength = 20;  ///< bytes
  /// Why it does not.
  enum class Reason : std::uint16_t {
    full = 1,           ///< no room for another session
    version = 2,        ///< another one is spoken; said in the hello's version, so that its sender can read it
    not_accepting = 3,  ///< no session is accepted
    terms = 4,          ///< none on these terms
  };
  std::uint32_t session = 0;               ///< of the receiver
  std::uint64_t nonce = 0;                 ///< of the hello
  Reason reason = Reason::full;            ///< why not
  std::uint8_t version = kMessageVersion;  ///< in the packet's first bytes; the hello's, where that is why not
  bool operator==(const MessageReject&) const = default;
};

/// The answer to a packet of a session that is not there: its own session and cookie.
struct MessageReset {
  static constexpr std::uint32_t kLength = 16;  ///< bytes
  std::uint32_t session = 0;                    ///< of the reset's sender
  std::uint64_t cookie = 0;                     ///< as the packet had it
  bool operator==(const MessageReset&) const = default;
};

// Flags of a session's packet.
inline constexpr std::uint8_t kMessageHasAck = 0x01;       ///< an acknowledgement follows the header
inline constexpr std::uint8_t kMessageHasFragment = 0x02;  ///< a fragment's header and payload follow
inline constexpr std::uint8_t kMessagePrompt = 0x04;       ///< to be acknowledged without waiting
inline constexpr std::uint8_t kMessagePing = 0x08;         ///< to be acknowledged though it has no fragment
inline constexpr std::uint8_t kMessageClose = 0x10;        ///< the session ends
inline constexpr std::uint8_t kMessageProtected = 0x20;    ///< a tag of 16 bytes follows the payload
inline constexpr std::uint8_t kMessageBundle = 0x40;       ///< the payload goes on with further whole messages, or,
                                                           ///< without a fragment, is a MessagePathCheck
inline constexpr std::uint8_t kMessageFollowed = 0x80;     ///< the datagram goes on with a packet of another session

inline constexpr std::uint32_t kMessageTagLength = 16;  ///< bytes
inline constexpr std::uint32_t kMaxAckWords = 16;       ///< most words of 64 packets each in an acknowledgement

/// Which packets arrived, and what the sender of this needs to know for the next.
struct MessageAck {
  static constexpr std::uint32_t kLength = 16;  ///< without words
  std::uint32_t cumulative = 0;                 ///< low half: all packet numbers below arrived or were given up
  std::uint32_t delay = 0;                      ///< ns since the packet with the largest number arrived, or the most
  std::uint32_t marked = 0;                     ///< packets so far with Congestion Experienced, modulo 2^32
  std::uint32_t room = 0;                       ///< bytes of messages that may be in flight
  bool operator==(const MessageAck&) const = default;
};

/// What a fragment belongs to, or what it says about a message instead.
enum class FragmentKind : std::uint8_t {
  request = 1,         ///< of a message that is to be answered
  response = 2,        ///< of the answer to one
  message = 3,         ///< of a one-way message
  cancel = 4,          ///< its beginner does not want it any more
  refuse = 5,          ///< it will not be handled
  busy = 6,            ///< no memory for it now: to be sent again later
  grant = 7,           ///< of a message that the receiver of this began
  grant_response = 8,  ///< of the response to a request of the sender of this
  busy_response = 9,   ///< no memory for the response to a request of the sender of this: to be sent again later
  go_away = 10,        ///< the sender of this takes no new messages on the session; of no message
};

/// What part of which message the payload is.
struct MessageFragment {
  static constexpr std::uint32_t kLength = 20;   ///< bytes of its header
  static constexpr std::uint32_t kTotal = 12;    ///< where `total` begins: bytes
  static constexpr std::uint8_t kMore = 0x80;    ///< bit beside the kind: the next message continues this one
  static constexpr std::uint8_t kHead = 0x40;    ///< bit beside the kind: kHeadLength bytes precede the payload
  static constexpr std::uint8_t kStream = 0x20;  ///< the same: a request, response or message of a stream
  static constexpr std::uint8_t kHigh = 0x10;    ///< the same: one that goes before others, and so its response
  static constexpr std::uint8_t kFlags = kMore | kStream | kHigh;  ///< which `flags` may have
  static constexpr std::uint32_t kHeadLength = 2;      ///< bytes; in them the head's, of a message of many fragments
  static constexpr std::uint32_t kTimeLeft = 8;        ///< bytes that a head begins with; metadata is what follows
  static constexpr std::uint32_t kMaxMetadata = 1024;  ///< bytes
  FragmentKind kind = FragmentKind::request;           ///< what follows, or what is said
  std::uint8_t flags = 0;                              ///< kMore, kStream, kHigh
  std::uint8_t slot = 0;                               ///< of the message's beginner, 0 to 63
  std::uint16_t code = 0;                              ///< of the application, or a RefusalCode
  std::uint32_t sequence = 0;                          ///< of the slot, one more for each message
  std::uint32_t offset = 0;                            ///< of the payload in the message: bytes
  std::uint32_t total = 0;                             ///< bytes of the whole message
  std::uint16_t order = 0;                             ///< among all messages of an ordered session's sender
  std::uint16_t fragment_bytes = 0;  ///< of each fragment of the message but the last; 0: there is only this one
  bool head_follows = false;         ///< the head's length does, before the payload: of several fragments
  /// Bytes of the message, its first, that are not of the application's data: 0 or kTimeLeft on. Of a message of
  /// several fragments parse() leaves it 0.
  std::uint16_t head = 0;
  /// Whether it has any of these.
  [[nodiscard]] WARPLINE_HD constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  bool operator==(const MessageFragment&) const = default;
};

/// What a message of a stream begins with (docs/message_format.md, Streams); rpc/streams/ says what it means.
struct MessageStreamHead {
  static constexpr std::uint32_t kLength = 20;  ///< bytes
  /// What the message is to its stream.
  enum class Kind : std::uint8_t {
    open = 1,    ///< the request that it begins with
    piece = 2,   ///< bytes of it
    end = 3,     ///< all pieces of who opened it were sent
    credit = 4,  ///< nothing but the credit
    answer = 5,  ///< the response to that request, with which it ends
  };
  Kind kind = Kind::piece;  ///< which of them
  std::uint32_t to = 0;     ///< the receiver's number of the stream; 0 in `open`
  std::uint32_t from = 0;   ///< the sender's, not 0
  std::uint32_t number =
      0;  ///< of a piece, from 0; of `end` and `answer` how many pieces their sender has sent; else 0
  std::uint32_t credit = 0;  ///< that the receiver has been given so far in all, modulo 2^32
  bool operator==(const MessageStreamHead&) const = default;
};

/// Reads the head of a message of so many bytes. Malformed if it is of no known kind or says nothing that its kind may.
[[nodiscard]] WARPLINE_HD constexpr MessageParse parse(const std::uint8_t* bytes, std::uint32_t length,
                                                       MessageStreamHead& head) {
  if (length < MessageStreamHead::kLength) return MessageParse::truncated;
  const std::uint32_t first = load_be32(bytes);
  head.kind = static_cast<MessageStreamHead::Kind>(first >> 24);
  head.to = load_be32(bytes + 4);
  head.from = load_be32(bytes + 8);
  head.number = load_be32(bytes + 12);
  head.credit = load_be32(bytes + 16);
  using Kind = MessageStreamHead::Kind;
  const bool known = head.kind >= Kind::open && head.kind <= Kind::answer && (first & 0xffffff) == 0;
  const bool numbered = head.kind == Kind::piece || head.kind == Kind::end || head.kind == Kind::answer;
  const bool bare = head.kind == Kind::end || head.kind == Kind::credit;
  const bool well = known && (head.to == 0) == (head.kind == Kind::open) && head.from != 0 &&
                    (numbered || head.number == 0) && (!bare || length == MessageStreamHead::kLength);
  return well ? MessageParse::ok : MessageParse::malformed;
}

/// Writes kLength bytes.
WARPLINE_HD constexpr void emit(const MessageStreamHead& head, std::uint8_t* bytes) {
  store_be32(bytes, std::uint32_t{static_cast<std::uint8_t>(head.kind)} << 24);
  store_be32(bytes + 4, head.to);
  store_be32(bytes + 8, head.from);
  store_be32(bytes + 12, head.number);
  store_be32(bytes + 16, head.credit);
}

/// Asks whether the peer is at the address that the packet is sent to, or says so (docs/message_format.md, Addresses
/// that change).
struct MessagePathCheck {
  static constexpr std::uint32_t kLength = 16;  ///< bytes
  /// Which of them.
  enum class Kind : std::uint8_t {
    challenge = 1,  ///< is to be answered by a response with the same time and token
    response = 2,   ///< the answer
  };
  Kind kind = Kind::challenge;  ///< whether it asks
  std::uint32_t time = 0;       ///< when the token was made, of its maker
  std::uint64_t token = 0;      ///< proves that the challenge was received where it was sent to
  bool operator==(const MessagePathCheck&) const = default;
};

/// A packet of a session: this header, then if flagged the acknowledgement with its words, then if flagged the
/// fragment's header, then payload_length bytes, then if flagged the tag. Without a fragment the payload of a ping is
/// padding: it asks whether so long a datagram arrives. In a bundle the fragment and all that follow
/// it in these bytes, each with its header, are whole messages, and the first has the packet's number, each other one
/// the next. What is flagged as a bundle and has no fragment is a MessagePathCheck. If flagged, another packet of a
/// session of the same peer begins where this one ends.
struct MessageHeader {
  static constexpr std::uint32_t kLength = 28;  ///< bytes of the fixed part
  /// Bytes that may precede the payload.
  static constexpr std::uint32_t kMaxLength =
      kLength + MessageAck::kLength + 8 * kMaxAckWords + MessageFragment::kLength;

  /// @{
  /// Where the field begins: bytes.
  static constexpr std::uint32_t kFlags = 2;
  static constexpr std::uint32_t kWords = 3;
  static constexpr std::uint32_t kSession = 4;
  static constexpr std::uint32_t kCookie = 8;
  static constexpr std::uint32_t kPacketNumber = 16;
  static constexpr std::uint32_t kFloorDistance = 24;
  static constexpr std::uint32_t kPayloadLength = 26;
  /// @}

  std::uint8_t flags = 0;            ///< kMessageHasAck and the others
  std::uint8_t ack_words = 0;        ///< words of the acknowledgement, 8 bytes each
  std::uint32_t session = 0;         ///< of the receiver
  std::uint64_t cookie = 0;          ///< of the session
  std::uint64_t packet_number = 0;   ///< one more for each packet of the sender
  std::uint16_t floor_distance = 0;  ///< packet_number less the oldest one that may still be acknowledged
  std::uint16_t payload_length = 0;  ///< bytes

  /// True if any bit of `flag` is set.
  [[nodiscard]] WARPLINE_HD constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  /// All packets before it were acknowledged or given up.
  [[nodiscard]] WARPLINE_HD constexpr std::uint64_t floor() const { return packet_number - floor_distance; }
  /// Is a MessagePathCheck.
  [[nodiscard]] WARPLINE_HD constexpr bool checks_path() const {
    return (flags & (kMessageBundle | kMessageHasFragment)) == kMessageBundle;
  }
  /// Without a fragment: whether the payload is a ping's padding, or a MessagePathCheck with nothing beside it.
  [[nodiscard]] WARPLINE_HD constexpr bool may_lack_fragment() const {
    if (has(kMessageBundle))
      return payload_length == MessagePathCheck::kLength && (flags & ~(kMessageBundle | kMessageProtected)) == 0;
    return payload_length == 0 || has(kMessagePing);
  }
  /// Wants to be acknowledged.
  [[nodiscard]] WARPLINE_HD constexpr bool elicits() const { return has(kMessageHasFragment | kMessagePing); }
  /// Bytes of the acknowledgement with its words; 0 without.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t ack_length() const {
    return has(kMessageHasAck) ? MessageAck::kLength + 8U * ack_words : 0;
  }
  /// All that precedes the payload.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t length() const {
    return kLength + ack_length() + (has(kMessageHasFragment) ? MessageFragment::kLength : 0);
  }
  /// From the first byte to the last.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t packet_length() const {
    return length() + payload_length + (has(kMessageProtected) ? kMessageTagLength : 0);
  }
  bool operator==(const MessageHeader&) const = default;
};

/// Reads what names a packet of a session, `session`, `cookie` and `packet_number`, of its first `length` bytes, which
/// are all that was repeated of it. `type`: of another type.
[[nodiscard]] WARPLINE_HD constexpr MessageParse parse_repeated(const std::uint8_t* bytes, std::uint32_t length,
                                                                MessageHeader& header) {
  const MessageParse prefix = MessagePrefix::check(bytes, length);
  if (prefix != MessageParse::ok) return prefix;
  if (MessagePrefix::type(bytes) != MessagePacketType::session) return MessageParse::type;
  if (length < MessageHeader::kFloorDistance) return MessageParse::truncated;
  header.session = load_be32(bytes + MessageHeader::kSession);
  header.cookie = load_be64(bytes + MessageHeader::kCookie);
  header.packet_number = load_be64(bytes + MessageHeader::kPacketNumber);
  return MessageParse::ok;
}

/// Reads the fixed part and checks that its lengths add up to `length`, all of the UDP payload from here on, or leave
/// room for the header of what follows; `bytes` holds at least min(length, MessageHeader::kMaxLength). Prefix checked
/// before.
[[nodiscard]] WARPLINE_HD constexpr MessageParse parse(const std::uint8_t* bytes, std::uint32_t length,
                                                       MessageHeader& header) {
  if (length < MessageHeader::kLength) return MessageParse::truncated;
  header.flags = bytes[2];
  header.ack_words = bytes[3];
  header.session = load_be32(bytes + 4);
  header.cookie = load_be64(bytes + 8);
  header.packet_number = load_be64(bytes + 16);
  header.floor_distance = load_be16(bytes + 24);
  header.payload_length = load_be16(bytes + 26);
  const bool followed = header.has(kMessageFollowed);
  const std::uint32_t most_words = header.has(kMessageHasAck) ? kMaxAckWords : 0;
  const bool contradicts = header.ack_words > most_words || (followed && header.has(kMessageProtected)) ||
                           header.floor_distance > header.packet_number ||
                           (!header.has(kMessageHasFragment) && !header.may_lack_fragment());
  if (contradicts) return MessageParse::malformed;
  const std::uint32_t expected = header.packet_length() + (followed ? MessageHeader::kLength : 0);
  if (length < expected) return MessageParse::truncated;
  return length == expected || followed ? MessageParse::ok : MessageParse::malformed;
}

/// Writes kLength bytes.
WARPLINE_HD constexpr void emit(const MessageHeader& header, std::uint8_t* bytes) {
  MessagePrefix::store(bytes, MessagePacketType::session, header.flags, header.ack_words);
  store_be32(bytes + 4, header.session);
  store_be64(bytes + 8, header.cookie);
  store_be64(bytes + 16, header.packet_number);
  store_be16(bytes + 24, header.floor_distance);
  store_be16(bytes + 26, header.payload_length);
}

/// Reads kLength bytes. Malformed if it is neither challenge nor response.
[[nodiscard]] WARPLINE_HD constexpr MessageParse parse(const std::uint8_t* bytes, MessagePathCheck& check) {
  const std::uint32_t first = load_be32(bytes);
  check.kind = static_cast<MessagePathCheck::Kind>(first >> 24);
  check.time = load_be32(bytes + 4);
  check.token = load_be64(bytes + 8);
  using Kind = MessagePathCheck::Kind;
  const bool known = check.kind == Kind::challenge || check.kind == Kind::response;
  return known && (first & 0xffffff) == 0 ? MessageParse::ok : MessageParse::malformed;
}

/// Writes kLength bytes.
WARPLINE_HD constexpr void emit(const MessagePathCheck& check, std::uint8_t* bytes) {
  store_be32(bytes, std::uint32_t{static_cast<std::uint8_t>(check.kind)} << 24);
  store_be32(bytes + 4, check.time);
  store_be64(bytes + 8, check.token);
}

/// Reads kLength bytes; any are well formed.
[[nodiscard]] WARPLINE_HD constexpr MessageAck load_ack(const std::uint8_t* bytes) {
  return {load_be32(bytes), load_be32(bytes + 4), load_be32(bytes + 8), load_be32(bytes + 12)};
}

/// Writes kLength bytes, the words left to the caller.
WARPLINE_HD constexpr void emit(const MessageAck& ack, std::uint8_t* bytes) {
  store_be32(bytes, ack.cumulative);
  store_be32(bytes + 4, ack.delay);
  store_be32(bytes + 8, ack.marked);
  store_be32(bytes + 12, ack.room);
}

/// Whether a message of this fragment may begin with such a head.
[[nodiscard]] WARPLINE_HD constexpr bool has_valid_head(const MessageFragment& fragment) {
  if (fragment.head == 0 && !fragment.head_follows) return true;
  const bool message = fragment.kind == FragmentKind::request || fragment.kind == FragmentKind::response ||
                       fragment.kind == FragmentKind::message;
  if (fragment.head_follows) return message;
  return message && fragment.head >= MessageFragment::kTimeLeft && fragment.head <= fragment.total &&
         fragment.head <= MessageFragment::kTimeLeft + MessageFragment::kMaxMetadata;
}

/// Malformed if it is of no known kind, of a stream or high though no message, `payload_length` bytes at its offset lie
/// outside of its total, or so does its head.
[[nodiscard]] WARPLINE_HD constexpr MessageParse parse(const std::uint8_t* bytes, std::uint32_t payload_length,
                                                       MessageFragment& fragment) {
  const std::uint8_t kind = bytes[0] & 0x0f;
  fragment.flags = bytes[0] & MessageFragment::kFlags;
  const std::uint8_t most = fragment.has(MessageFragment::kStream | MessageFragment::kHigh) ? 3 : 10;
  if (kind < 1 || kind > most) return MessageParse::malformed;
  fragment.kind = static_cast<FragmentKind>(kind);
  fragment.slot = bytes[1];
  fragment.code = load_be16(bytes + 2);
  fragment.sequence = load_be32(bytes + 4);
  fragment.offset = load_be32(bytes + 8);
  fragment.total = load_be32(bytes + 12);
  fragment.order = load_be16(bytes + 16);
  const std::uint16_t size = load_be16(bytes + 18);
  fragment.head_follows = (bytes[0] & MessageFragment::kHead) != 0;
  if (fragment.head_follows) {
    if (payload_length < MessageFragment::kHeadLength) return MessageParse::malformed;
    payload_length -= MessageFragment::kHeadLength;
  }
  const bool whole = !fragment.head_follows && payload_length == fragment.total;
  fragment.fragment_bytes = whole ? 0 : size;
  fragment.head = whole ? size : 0;
  const bool inside = fragment.offset <= fragment.total && payload_length <= fragment.total - fragment.offset;
  return inside && has_valid_head(fragment) ? MessageParse::ok : MessageParse::malformed;
}

/// The next fragment of a bundle, of which `left` bytes begin at `bytes`: a header and the whole message behind it.
[[nodiscard]] WARPLINE_HD constexpr MessageParse parse_bundled(const std::uint8_t* bytes, std::uint32_t left,
                                                               MessageFragment& fragment) {
  if (left < MessageFragment::kLength) return MessageParse::malformed;
  const std::uint32_t total = load_be32(bytes + MessageFragment::kTotal);
  const bool whole = total <= left - MessageFragment::kLength && (bytes[0] & MessageFragment::kHead) == 0;
  return whole ? parse(bytes, total, fragment) : MessageParse::malformed;
}

/// Writes kLength bytes.
WARPLINE_HD constexpr void emit(const MessageFragment& fragment, std::uint8_t* bytes) {
  bytes[0] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(fragment.kind) | fragment.flags |
                                       (fragment.head_follows ? MessageFragment::kHead : 0));
  bytes[1] = fragment.slot;
  store_be16(bytes + 2, fragment.code);
  store_be32(bytes + 4, fragment.sequence);
  store_be32(bytes + 8, fragment.offset);
  store_be32(bytes + 12, fragment.total);
  store_be16(bytes + 16, fragment.order);
  store_be16(bytes + 18, fragment.fragment_bytes != 0 ? fragment.fragment_bytes : fragment.head);
}

// The others, with `length` the whole UDP payload. Bytes that mean nothing yet are zero.

/// @{
/// Fills the packet in when it answers `ok`. Prefix checked before.
[[nodiscard]] MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageHello& hello);
[[nodiscard]] MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageChallenge& challenge);
[[nodiscard]] MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageAccept& accept);
[[nodiscard]] MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageReject& reject);
[[nodiscard]] MessageParse parse(const std::uint8_t* bytes, std::uint32_t length, MessageReset& reset);
/// @}

/// @{
/// Writes the whole packet, prefix included: kLength bytes, or length() where there is one.
void emit(const MessageHello& hello, std::uint8_t* bytes);
void emit(const MessageChallenge& challenge, std::uint8_t* bytes);
void emit(const MessageAccept& accept, std::uint8_t* bytes);
void emit(const MessageReject& reject, std::uint8_t* bytes);
void emit(const MessageReset& reset, std::uint8_t* bytes);
/// @}

/// The enumerator, such as "hello".
[[nodiscard]] std::string_view name(MessagePacketType type);
/// The enumerator, such as "request".
[[nodiscard]] std::string_view name(FragmentKind kind);
/// One line for people: what the UDP payload is.
[[nodiscard]] std::string describe_message(const std::uint8_t* bytes, std::uint32_t length);

}  // namespace warpline::packet
