// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>

#include "warpline/base/address.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/units.h"

namespace warpline::message {

/// A UDP endpoint somewhere. IPv4 addresses are IPv4-mapped (RFC 4291, section 2.5.5.2), so that comparing is cheap.
struct PeerAddress {
  std::array<std::uint8_t, 16> ip{};  ///< bytes in network order; of IPv4 the last four
  std::uint16_t port = 0;             ///< of UDP, in host byte order
  /// The transport's number of its own address that the peer sent to, and is answered from; 0: any. It is no part of
  /// the peer's name: who sends to another one is the same peer.
  std::uint16_t local = 0;
  std::uint32_t scope = 0;  ///< of a link-local IPv6 address: the interface's index (RFC 4007); otherwise 0
  auto operator<=>(const PeerAddress& other) const {
    return std::tie(ip, port, scope) <=> std::tie(other.ip, other.port, other.scope);
  }
  /// By halves: one of a datagram was written so just before, and a longer load would wait for both.
  bool operator==(const PeerAddress& other) const {
    return ((half(0) ^ other.half(0)) | (half(8) ^ other.half(8)) | static_cast<std::uint64_t>(port ^ other.port) |
            (scope ^ other.scope)) == 0;
  }

  /// Whether it is the same address, whatever the port.
  [[nodiscard]] bool same_address(const PeerAddress& other) const { return ip == other.ip && scope == other.scope; }

 private:
  [[nodiscard]] std::uint64_t half(std::size_t at) const {
    std::uint64_t word;
    std::memcpy(&word, ip.data() + at, sizeof(word));
    return word;
  }
};

/// Makes a peer of an address and a port in host byte order.
[[nodiscard]] PeerAddress peer_address(const IpAddress& ip, std::uint16_t port);
/// The same with the scope of a link-local address.
[[nodiscard]] PeerAddress peer_address(const SocketAddress& address);
/// The peer's address, IPv4 if it is IPv4-mapped.
[[nodiscard]] IpAddress ip_address(const PeerAddress& peer);

/// A session of one endpoint. A value: stays safe to use after the session's end, when every call answers
/// `unknown_session`.
struct SessionId {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();  ///< below max_sessions; reused
  std::uint32_t generation = 0;  ///< tells apart the sessions that had the index one after another
  auto operator<=>(const SessionId&) const = default;
};

/// A request or one-way message of one endpoint, its own or a peer's; as safe as a SessionId.
struct MessageId {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();  ///< below max_messages; reused
  std::uint32_t generation = 0;  ///< tells apart the messages that had the index one after another
  bool incoming = false;         ///< begun by the peer
  auto operator<=>(const MessageId&) const = default;
};

/// Names a key that both ends of a session were given, and tells nothing of it. 0: none.
using KeyId = std::uint64_t;

/// Bytes of the application to be sent. Up to kInlineBytes of host memory are copied by the call; longer ones are read
/// until the message's last event, unless SendOptions::copy.
struct ConstBuffer {
  const std::uint8_t* data = nullptr;  ///< first byte; the application's
  std::uint32_t length = 0;            ///< bytes at `data`
  bool device = false;                 ///< not readable by the CPU: only the transport touches it
};

/// Bytes of the application to be received into, until the message's last event.
struct MutableBuffer {
  std::uint8_t* data = nullptr;  ///< first byte; the application's
  std::uint32_t length = 0;      ///< bytes at `data`
  bool device = false;           ///< not writable by the CPU: the Placer copies
};

inline constexpr std::uint32_t kInlineBytes = 128;  ///< longest message that a call copies by itself, in bytes
/// Longer ones go as several messages, SendOptions::more, of an ordered session.
inline constexpr std::uint32_t kMaxMessageBytes = 0x7fffffff;
inline constexpr std::uint32_t kMaxMetadataBytes = 1024;  ///< of one message, in bytes

/// How a message ended. Exactly one for each request, one-way message and response that was accepted.
enum class MessageStatus : std::uint8_t {
  ok,         ///< request: answered; others: all of it is with the peer
  refused,    ///< the peer could not take it: `code` holds a RefusalCode
  too_long,   ///< the response is longer than its buffer; `length` says how long
  deadline,   ///< the deadline came first
  cancelled,  ///< by cancel(), or, of a response, by the peer
  peer_lost,  ///< the session ended: peer silent, restarted, refused, or either side closed it
};

/// How far an own request or one-way message came to the peer's application when it ended. Up to `not_handled` it may
/// be submitted once more, to this peer or another, whatever it does there.
enum class Reach : std::uint8_t {
  never_sent,     ///< no packet of it left this end
  not_handled,    ///< a part left, or the peer refused it: it was not handed to the peer's application, and will not be
  maybe_handled,  ///< all of it left; nobody here knows what became of it
  handled,        ///< the peer's application had it: it answered, began to, or gave it back
};

/// Why a call did nothing.
enum class CallStatus : std::uint8_t {
  ok,               ///< it did what it should
  unknown_session,  ///< never was, or is gone
  unknown_message,  ///< ended, answered or released before
  no_slot,          ///< as many messages of the session are under way, and wait, as may be: again after one's event
  no_memory,    ///< the pool of messages, sessions or buffers, or the share of the peer's address, is used up: again
                ///< after an event
  too_long,     ///< longer than kMaxMessageBytes, or metadata longer than kMaxMetadataBytes
  not_allowed,  ///< makes no sense here: copying device memory, reconnecting a living session
  going_away,   ///< the peer takes nothing new on this session, which ends when all is answered: ask another one
};

/// Protocol-level refusals, told to the sender.
enum class RefusalCode : std::uint16_t {
  message_too_long = 1,  ///< longer than the peer's max_message_bytes
  declined = 2,          ///< the peer's application gave the request back by release()
  stalled = 3,           ///< it began to arrive there, and nothing more came for the peer's message_timeout
  expired = 4,           ///< its deadline had come before the peer's application took it
  going_away = 5,        ///< the peer drains, see Endpoint::drain(): ask another one
  no_streams = 8,        ///< it opens a stream, or is of one, and the peer takes none (EndpointConfig::streams)
  broken_stream = 9,     ///< found here: the peer's pieces contradict what was agreed, see rpc::CallStreams
};

/// Why a session ended.
enum class LossReason : std::uint8_t {
  none,           ///< it has not
  silent,         ///< nothing heard for peer_timeout
  restarted,      ///< the peer does not know the session any more
  closed,         ///< by the peer
  closed_here,    ///< by close()
  no_answer,      ///< the handshake was not answered within connect_timeout
  peer_full,      ///< the peer has no room for a session
  wrong_version,  ///< the peer speaks no version of ours
  stalled,        ///< ordered: what the peer sent waited for message_timeout for something before it that did not come
  not_accepted,   ///< the peer accepts no sessions, or not with these options
  going_away,     ///< opened here: the peer drains, and all that it had taken is answered
  unreachable,    ///< the network said that nothing has the peer's port, and the peer did not contradict
};

[[nodiscard]] std::string_view name(MessageStatus status);  ///< the enumerator, such as "peer_lost"
[[nodiscard]] std::string_view name(Reach reach);           ///< the enumerator, such as "never_sent"
[[nodiscard]] std::string_view name(CallStatus status);     ///< the enumerator, such as "no_slot"
[[nodiscard]] std::string_view name(LossReason reason);     ///< the enumerator, such as "silent"

inline constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};  ///< as a deadline: none

/// What a MessageEvent tells.
enum class EventKind : std::uint8_t {
  connected,       ///< connect() or reconnect() succeeded
  accepted,        ///< a peer opened a session; `session` is new
  lost,            ///< the session ended, `reason` says why; all its messages' events came before. One that a
                   ///< peer opened can be asked about until the next poll()
  request,         ///< of the peer, whole: respond(id), now or later, or release(id), once
  message,         ///< of the peer, one-way, whole: release(id), once
  withdrawn,       ///< the peer cancelled the request `id`, or is gone: an answer goes nowhere, but must still be given
  response,        ///< the end of an own request, whatever `status`
  sent,            ///< the end of an own one-way message or, `id.incoming`, of a response that was not copied
  stream_request,  ///< as `request`, with RequestOptions::stream
  stream_piece,    ///< as `message`, with SendOptions::stream
};

/// What a message of the peer says beside its bytes.
struct ReceivedHead {
  std::span<const std::uint8_t> metadata{};  ///< in host memory
  Nanos deadline = kNever;                   ///< of a request
};

/// What poll() hands out. Plain values, in one line of the cache.
struct MessageEvent {
  EventKind kind = EventKind::connected;     ///< says which of the others mean anything
  MessageStatus status = MessageStatus::ok;  ///< of `response` and `sent`: how it ended
  Reach reach = Reach::never_sent;           ///< of `response`, and `sent` of a one-way message: how far it came
  LossReason reason = LossReason::none;      ///< of `lost`: why the session ended
  std::uint16_t code = 0;     ///< of the application: of a request, message or response; or a RefusalCode
  bool more = false;          ///< SendOptions::more
  bool device = false;        ///< `data` is device memory
  SessionId session;          ///< the session that it happened on
  MessageId id;               ///< the message or request that it is about, if any
  std::uint32_t length = 0;   ///< bytes at `data`; of `sent`, or a response that is too_long, how many it has
  std::uint64_t context = 0;  ///< as given with the request, message or connect()
  /// Request, message: valid until respond() or release(). Response: its buffer, or until release() if it is in the
  /// endpoint's memory.
  const std::uint8_t* data = nullptr;
  const ReceivedHead* head = nullptr;  ///< valid as long as `data`; null: neither metadata nor a deadline

  /// Metadata of a request, message, or response in the endpoint's memory, as its sender gave it; valid as long as
  /// `data`, in host memory. MetadataReader reads what MetadataWriter wrote.
  [[nodiscard]] std::span<const std::uint8_t> metadata() const {
    return head == nullptr ? std::span<const std::uint8_t>{} : head->metadata;
  }
  /// When a request's sender gives it up, by the clock here, later by the time that it was on the way. Or kNever.
  [[nodiscard]] Nanos deadline() const { return head == nullptr ? kNever : head->deadline; }
};
static_assert(sizeof(MessageEvent) <= 64);

/// What goes first of what one end of sessions has to send. Of eight packets in a row one is `normal` while such wait.
/// On ordered sessions requests and one-way messages are all `normal`.
enum class Priority : std::uint8_t {
  normal,  ///< in turns, behind what is high
  high,    ///< before what is normal, of all sessions; responses to it are high as well
};
constexpr auto names_of(Priority) { return enum_names<Priority>({"normal", "high"}); }

/// How a one-way message or a response is sent.
struct SendOptions {
  std::uint64_t context = 0;  ///< comes back in the message's event
  std::uint16_t code = 0;     ///< the application's: kind of message, result of a request
  /// The next message continues this one: for streams of any length, on ordered sessions. Told to the receiver.
  bool more = false;
  bool copy = false;                     ///< copy the bytes now, into the endpoint's memory; they may change at once
  Priority priority = Priority::normal;  ///< of a response at least that of its request
  bool stream = false;                   ///< begins with the head of a stream, for rpc::CallStreams there
  /// Told to the receiver beside the bytes; copied by the call. Of a response only if the request was made with
  /// `response_in_endpoint`.
  std::span<const std::uint8_t> metadata{};
};

/// How a request is sent.
struct RequestOptions {
  std::uint64_t context = 0;             ///< comes back in the request's event
  std::uint16_t code = 0;                ///< the application's, handed to the peer with the request
  bool copy = false;                     ///< copy the bytes now, into the endpoint's memory; they may change at once
  Priority priority = Priority::normal;  ///< of the request, and of its response
  /// A time of the endpoint's clock, not a duration. The peer is told how much is left of it, and does not hand the
  /// request to its application when nothing is.
  Nanos deadline = kNever;
  /// The response may be of any length up to max_message_bytes: it goes where messages of peers go, into the endpoint's
  /// memory or that of its BufferSource. If it ends as `ok`, its id and data are the application's until release(id).
  bool response_in_endpoint = false;
  bool stream = false;  ///< begins with the head of a stream, and so does its response; for rpc::CallStreams there
  std::span<const std::uint8_t> metadata{};  ///< told to the peer beside the bytes; copied by the call
};

}  // namespace warpline::message
