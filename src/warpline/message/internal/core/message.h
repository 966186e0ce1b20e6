// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "warpline/base/units.h"
#include "warpline/message/internal/parts/fragment_window.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// Whose message this is and which way it goes; `free`: its place in the pool is.
enum class TransferRole : std::uint8_t {
  free,
  own_request,
  own_message,
  peer_request,
  peer_message,
};

enum class MessageState : std::uint8_t {
  queued,       ///< own: waits for a slot
  sending,      ///< own, or a response: fragments are left to be sent or acknowledged
  awaiting,     ///< own request, at the peer: its response is awaited or arriving
  withdrawing,  ///< own, ended early: the peer is being told
  ended,        ///< own, or a response: nothing more goes out
  arriving,     ///< the peer's: fragments are missing
  held_back,    ///< the peer's: whole, waits for its turn (ordered sessions)
  delivered,    ///< the peer's: with the application, or its event is due
  withdrawn,    ///< request of the peer: void, but the application still has it
};

/// Whether a message counts in PeerGroups as one that is arriving.
enum class MemoryShare : std::uint8_t {
  none,
  held,
  borrowed,  ///< beyond the peer's share
};

/// What of a message's memory is not the application's: bits of MessageFields::owned.
inline constexpr std::uint8_t kOwnsIn = 1;            ///< `in`, of the endpoint's receive memory
inline constexpr std::uint8_t kOwnsInSource = 2;      ///< `in`, of the BufferSource
inline constexpr std::uint8_t kOwnsInMetadata = 4;    ///< MessageHead::in_metadata, of the receive memory
inline constexpr std::uint8_t kOwnsOut = 8;           ///< `out`, the same
inline constexpr std::uint8_t kOwnsOutMetadata = 16;  ///< MessageHead::out_metadata, the same
inline constexpr std::uint8_t kOwnsAnyIn = kOwnsIn | kOwnsInSource | kOwnsInMetadata;

/// What begins anew with each message.
struct MessageFields {
  // What is being sent: the request, the message or the response, behind its head.
  const std::uint8_t* out = nullptr;
  std::uint32_t out_length = 0;     ///< with its head
  std::uint32_t next_fragment = 0;  ///< to be sent for the first time
  std::uint32_t fragments = 0;      ///< to be sent

  std::uint32_t group = kNone;  ///< the peer's: of its address, in PeerGroups
  std::uint32_t session = kNone;
  std::uint32_t session_generation = 0;
  std::uint32_t epoch = 0;     ///< the session's; if that differs now, the session is no longer this message's
  std::uint32_t sequence = 0;  ///< sequence number in the slot
  std::uint32_t send_next = kNone;
  std::uint32_t event_next = kNone;

  TransferRole role = TransferRole::free;
  MessageState state = MessageState::ended;
  MessageStatus status = MessageStatus::ok;
  Reach reach = Reach::never_sent;  ///< of an own one
  std::uint8_t slot = 0;
  bool has_slot = false;
  bool queued_to_send = false;
  bool event_due = false;          ///< in the queue of events
  std::uint8_t flags = 0;          ///< packet::MessageFragment::flags of what is sent, or received, but no refusal
  bool settled : 1 = false;        ///< own, of an ordered session: those behind it do not wait for it any more
  bool deferred : 1 = false;       ///< own: the peer had no room for it, and gets it again later
  bool finishing : 1 = false;      ///< its end waits for the transport
  bool withdrawn_due : 1 = false;  ///< that event, not the usual one
  bool refuse : 1 = false;         ///< the response is a refusal
  bool charged : 1 = false;        ///< its place in the pool counts in PeerGroups
  bool taken : 1 = false;          ///< a request that the application has one of its places for; EventQueue's
  bool lent : 1 = false;           ///< a response in the endpoint's place: the application has it
  std::uint8_t busy = 0;           ///< how often the peer had no room
  bool out_device = false;
  bool in_device = false;
  std::uint8_t owned = 0;    ///< memory to be given back
  bool tells_sent = false;   ///< a response that ends with an event
  bool in_begun = false;     ///< the response has a place, and a fragment of it has arrived
  bool unread = false;       ///< counts as such in its session
  bool in_endpoint = false;  ///< the response gets a place of the endpoint's
  MemoryShare share = MemoryShare::none;
  std::uint8_t grant_epoch = 0;  ///< when `owed` changed last
  std::uint16_t code = 0;        ///< application's code of what is sent
  std::uint16_t in_code = 0;     ///< code of what is received
  std::uint16_t order = 0;
  std::uint16_t out_head = 0;        ///< bytes of the time left and of metadata
  std::uint16_t in_head = 0;         ///< the same of what is received
  std::uint16_t fragment_bytes = 0;  ///< of each fragment but the last; of what is received whole 0
  std::uint32_t owed = 0;            ///< bytes received of it that are granted and have not arrived
  std::uint32_t in_transport = 0;    ///< packets handed out whose payload the transport may still read

  // What is being received: the peer's message, or the response.
  std::uint8_t* in = nullptr;
  std::uint32_t in_length = 0;    ///< bytes of the message or response, with its head
  std::uint32_t in_capacity = 0;  ///< most bytes of the response

  std::uint64_t context = 0;
  Nanos deadline = kNever;  ///< of a request; of what is arriving or held back, attended(): then it is given up
  std::uint32_t granted = 0xffffffff;  ///< bytes that may be sent; once something is received, of that
};

/// What of a message the bytes before the application's say. Most messages have none, and this lies apart from them.
struct MessageHead {
  const std::uint8_t* out_metadata = nullptr;  ///< with out_head
  std::uint8_t* in_metadata = nullptr;         ///< with in_head; not of a response in the application's buffer
  Nanos expires = kNever;                      ///< a peer's request with in_head: its sender gives it up
  ReceivedHead received;                       ///< of an event
};

/// A message under way, own or of the peer; a request and its response are one.
struct Message : MessageFields {
  std::uint32_t generation = 1;  ///< counts the uses of this place in the pool

  /// A message needs one of these at a time: a single fragment's bytes, or the window of many fragments.
  union {
    std::array<std::uint8_t, kInlineBytes> bytes;
    FragmentWindow window;
  };

  Message() : bytes() {}
  [[nodiscard]] bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  void begin_window() { new (&window) FragmentWindow(); }
};
static_assert(sizeof(Message) == 128 + sizeof(FragmentWindow), "two cache lines, and its bytes or window");

}  // namespace warpline::message
