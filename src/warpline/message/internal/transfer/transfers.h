// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/types.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// What a cancel and a grant have in place of a fragment's number.
inline constexpr std::uint32_t kCancelFragment = 0xffffffffU;
inline constexpr std::uint32_t kGrantFragment = 0xfffffffeU;

/// The life of messages, from their place in the pool and in their session's slots to their one event. A message is
/// freed when it is over and nobody holds it: no slot, no queue, no event, not the transport. An own message keeps its
/// slot until the peer knows its end.
class Transfers {
 public:
  explicit Transfers(EndpointCore& core) : core_(core) {}

  // Places.
  /// A new message of the session; kNone if there is none left.
  [[nodiscard]] std::uint32_t create(Session& session, TransferRole role) {
    const std::uint32_t index = core_.messages.take(role, core_.sessions.id_of(session), session.epoch);
    const bool own = role == TransferRole::own_request || role == TransferRole::own_message;
    if (index != kNone && !own) core_.groups.take_place(session, core_.messages[index]);
    return index;
  }
  /// An own message gets a slot of the session, which has one free, and is sent.
  void start(Session& session, std::uint32_t index);
  void free(std::uint32_t index);
  void free_if_over(std::uint32_t index) {
    const Message& message = core_.messages[index];
    const bool held = message.event_due || message.finishing || message.lent;
    const bool over = message.state == MessageState::ended && !held;
    const bool own = message.role == TransferRole::own_request || message.role == TransferRole::own_message;
    if (over && !message.queued_to_send && message.in_transport == 0 && !(own && message.has_slot)) free(index);
  }

  // What is sent.
  /// What is to be sent, and in how many fragments. `timed`: the peer is told how much time is left.
  [[nodiscard]] CallStatus set_out(Message& message, const Session& session, ConstBuffer bytes, bool copy,
                                   std::span<const std::uint8_t> metadata, bool timed) {
    if (timed || !metadata.empty()) [[unlikely]]
      return set_out_with_head(message, session, bytes, copy, metadata);
    if (bytes.length > kMaxMessageBytes) return CallStatus::too_long;
    const CallStatus status = core_.messages.take_out(message, bytes, copy);
    if (status == CallStatus::ok) cut(message, session);
    return status;
  }
  /// The message has fragments to be sent, as far as windows and grants let it.
  void enqueue(Session& session, std::uint32_t index) {
    Message& message = core_.messages[index];
    if (message.queued_to_send) return;
    message.queued_to_send = true;
    append(core_.messages, list_of(session, message), index);
    core_.ready.add(session);
  }
  /// The first message of a list that has something to send; kNone if there is none. Those without leave the list.
  [[nodiscard]] std::uint32_t next_to_send(MessageList& list);
  /// The first message of the list leaves it.
  void pop(MessageList& list) {
    Message& message = core_.messages[list.first];
    list.first = message.send_next;
    if (list.first == kNone) list.last = kNone;
    message.queued_to_send = false;
  }
  /// The first message of a list of several goes to its end.
  void rotate(MessageList& list) {
    const std::uint32_t index = list.first;
    list.first = core_.messages[index].send_next;
    append(core_.messages, list, index);
  }
  /// The peer takes more of a message.
  void granted(Session& session, const packet::MessageFragment& fragment);
  /// The peer has no room for a message or response: it waits for retry_deferred() as if nothing of it had been sent.
  /// Returns which; kNone if it has found room since.
  [[nodiscard]] std::uint32_t defer(Session& session, const packet::MessageFragment& fragment);
  void retry_deferred(Session& session);
  /// What the packet says of a message has arrived.
  void acknowledged(Session& session, const SentPacket& packet);
  /// Whether the packet's fragment must be sent again if it is lost.
  [[nodiscard]] bool needs(const SentPacket& packet) const;
  /// All packets of the session were forgotten: messages begin again at what is acknowledged of them.
  void begin_again(Session& session);
  /// The session's fragments have a size now: what was submitted during the handshake was not yet cut.
  void cut_again(Session& session);
  /// A message whose fragments are longer than the session's are now begins anew, in smaller ones. False: it is none.
  [[nodiscard]] bool cut_smaller(Session& session, std::uint32_t index);
  /// The transport does not read a payload with this token any more.
  void transmitted(std::uint64_t token);

  // What is received.
  /// A whole message goes to the application.
  void deliver(Session& session, std::uint32_t index) {
    Message& message = core_.messages[index];
    if (message.share != MemoryShare::none) give_up_share(session, message);
    message.unread = true;
    session.unread += message.in_length;
    message.state = MessageState::delivered;
    core_.events.add(index);
  }
  /// A request that is whole will not be answered, and its bytes are not needed any more.
  void decline(std::uint32_t index, RefusalCode code);
  /// The application holds the message's bytes no longer.
  void no_longer_unread(Message& message);
  /// The peer, or the session's end, takes back a request or its half that arrived.
  void withdraw_incoming(std::uint32_t index);

  // Ends.
  void end_own(Session& session, std::uint32_t index, MessageStatus status) {
    free_slot(session, core_.messages[index]);
    finish(index, status);
  }
  void end_response(std::uint32_t index, MessageStatus status);
  /// The application gives back a response that it was lent.
  void take_back(Message& message);
  /// Ends an own message early; its slot is free when the peer knows.
  void withdraw_own(Session& session, std::uint32_t index, MessageStatus status);
  /// The peer takes nothing new: what has not left ends as refused, so that it may be asked of another.
  void end_unsent(Session& session);
  /// Ends requests whose deadline has come.
  void expire(Session& session);
  /// The session is lost, and all its messages end.
  void end_all(Session& session);

 private:
  /// Where a message waits that has fragments to be sent.
  [[nodiscard]] static MessageList& list_of(Session& session, const Message& message) {
    const bool reply = message.role == TransferRole::peer_request || message.refuse;
    if (message.has(packet::MessageFragment::kHigh)) [[unlikely]]
      return reply ? session.high_replies : session.high_own;
    return reply ? session.replies : session.own;
  }
  /// The message has arrived, or is freed: its memory counts no longer as what its peer holds.
  void leave_shares(Message& message);
  void give_up_share(const Session& session, Message& message) {
    const bool borrowed = message.share == MemoryShare::borrowed;
    message.share = MemoryShare::none;
    core_.groups.release(session, ReceiveMemory::block_bytes(message.in_length), borrowed);
  }
  [[nodiscard]] CallStatus set_out_with_head(Message& message, const Session& session, ConstBuffer bytes, bool copy,
                                             std::span<const std::uint8_t> metadata);
  /// Says in how many fragments what is to be sent goes.
  static void cut(Message& message, const Session& session) {
    message.fragment_bytes = static_cast<std::uint16_t>(session.fragment_bytes);
    message.fragments = message.out_length == 0 ? 1 : (message.out_length - 1) / session.fragment_bytes + 1;
    if (message.out_head != 0 && message.fragments > 1) [[unlikely]] {
      message.fragment_bytes -= packet::MessageFragment::kHeadLength;
      message.fragments = (message.out_length - 1) / message.fragment_bytes + 1;
    }
    message.next_fragment = 0;
    message.granted = session.peer_grants ? message.fragment_bytes : 0xffffffff;
  }
  /// Begins to tell the peer that an own message that has a slot will not come.
  void tell_withdrawn(Session& session, std::uint32_t index);
  void turn_away(std::uint32_t index);
  [[nodiscard]] Session* session_of(const Message& message);
  void finish(std::uint32_t index, MessageStatus status);
  /// A message that has ended leaves its session's queue in the session's next turn, which may be far away: it may have
  /// waited there for the peer.
  void leave_queue(const Message& message) {
    if (message.queued_to_send) [[unlikely]]
      core_.ready.add(core_.sessions[message.session]);
  }
  void lend(Message& message);
  void take_slot(Session& session, std::uint32_t index);
  void free_slot(Session& session, Message& message);
  void start_queued(Session& session);
  void settle_order(Session& session, Message& message);
  void sent_whole(Session& session, std::uint32_t index);

  EndpointCore& core_;
};

}  // namespace warpline::message
