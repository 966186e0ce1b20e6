// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/large_vector.h"
#include "warpline/message/config.h"
#include "warpline/message/counters.h"
#include "warpline/message/datagram.h"
#include "warpline/message/endpoint.h"
#include "warpline/message/internal/index_pool.h"
#include "warpline/message/internal/inner_clock.h"
#include "warpline/message/internal/session/pacing_wheel.h"
#include "warpline/message/internal/session/peer_table.h"
#include "warpline/message/internal/session/session.h"
#include "warpline/message/internal/session/siphash.h"
#include "warpline/message/internal/transfer/message.h"
#include "warpline/message/receive_memory.h"

namespace warpline {

/// A packet for someone without a session.
struct StrayReply {
  static constexpr std::uint32_t kMaxLength = 64;
  PeerAddress to;
  std::uint32_t length = 0;
  std::array<std::uint8_t, kMaxLength> bytes;
};

/// In the queue of events: a message's, or one of a session's two.
struct EventLink {
  enum class Of : std::uint8_t { message, opened, lost };
  std::uint32_t index = kNone;
  Of of = Of::message;
};

/// What acknowledgements of one packet came to.
struct AckTally {
  std::uint32_t bytes = 0;
  std::uint32_t packets = 0;
  bool spurious = false;
  std::uint64_t newest = 0;  ///< number plus one
  Nanos newest_sent;
};

/// Grants to all sessions. What is owed is counted by when it moved last: since the last tick, or since the one before.
struct GrantBudget {
  MessageList wanting;  ///< sessions, by wanting_next
  std::uint64_t owed = 0;
  std::uint64_t owed_before = 0;
  Nanos tick_at = kNever;
  Nanos not_before;
  std::uint8_t epoch = 0;
};

/// A packet that is being written: its first fragment, and the small messages that travel along (bundling, as SCTP has
/// it: RFC 9260, section 6.10).
struct Draft {
  Outgoing& out;
  std::uint64_t number = 0;
  std::uint32_t header_length = 0;  ///< all before the first payload; 0: there is no fragment yet
  std::uint32_t limit = 0;          ///< bytes that the head may have; 0: nothing joins it
  bool prompt = false;
  [[nodiscard]] bool begun() const { return header_length != 0; }
};

class FetchAhead;

/// All of an endpoint. Its members are grouped by the files that define them; each group is one concern.
struct EndpointState {
  EndpointState(const EndpointConfig& config, Nanos now);

  EndpointConfig config;
  SipKey key;
  std::uint32_t least_head;  ///< bytes that Outgoing::head_capacity must be
  InnerClock clock;
  EndpointCounters counters;

  LargeVector<Session> sessions;
  std::vector<std::uint32_t> free_sessions;
  IndexPool<Message> messages;
  IndexPool<SentBlock> blocks;
  ReceiveMemory memory;
  PeerTable peers;
  PacingWheel<std::uint32_t> wheel;  ///< entries are values of wheel_entry()
  std::uint32_t armed_sessions = 0;  ///< with a Timer::due in the wheel
  std::vector<StrayReply> strays;    ///< a ring
  std::uint32_t stray_first = 0;
  std::uint32_t stray_count = 0;
  std::uint64_t nonces = 0;

  MessageList ready;                      ///< sessions, by ready_next
  MessageList starved;                    ///< sessions, by starved_next
  std::uint32_t blocks_when_starved = 0;  ///< free then: with more of them it is worth another try
  GrantBudget grants;
  MessageList acks;                 ///< sessions by ack_next, in the order of ack_at
  std::uint32_t told_lost = kNone;  ///< sessions to be freed, by lost_next
  EventLink first_event;
  EventLink last_event;
  MessageList set_aside_requests;  ///< by event_next: left the queue while poll() was to hand out no more requests

  [[nodiscard]] Nanos now() const { return clock.now(); }
  void enter(Nanos outer) {
    if (!clock.update(outer)) counters.clock_jumps.add(1);
  }
  [[nodiscard]] Session* find(SessionId id);
  [[nodiscard]] std::uint32_t index_of(const Session& session) const {
    return static_cast<std::uint32_t>(&session - sessions.data());
  }
  [[nodiscard]] SessionId id_of(const Session& session) const { return {index_of(session), session.generation}; }
  [[nodiscard]] std::uint32_t wire_id(const Session& session) const {
    return std::uint32_t{config.endpoint} << 24 | index_of(session);
  }
  void drop(MessageDrop reason) { counters.drops[static_cast<std::size_t>(reason)].add(1); }

  // sessions.cc
  Opened connect(const PeerAddress& peer, const SessionOptions& options);
  CallStatus reconnect(SessionId id);
  CallStatus close(SessionId id);
  CallStatus forget(SessionId id);
  [[nodiscard]] Session* new_session(const PeerAddress& peer);
  void begin(Session& session);
  void lose(Session& session, LossReason reason);
  void free_session(Session& session);
  void queue_lost_event(Session& session);
  [[nodiscard]] SessionFacts facts(SessionId id);

  // handshake.cc
  void begin_hello(Session& session);
  void write_hello(Session& session, Outgoing& out);
  void write_accept(Session& session, Outgoing& out);
  void receive_hello(const Datagram& datagram);
  void receive_challenge(const Datagram& datagram);
  void receive_accept(const Datagram& datagram);
  void receive_reject(const Datagram& datagram);
  void receive_reset(const Datagram& datagram);
  void wrong_version(const Datagram& datagram);
  void establish(Session& session, const MessageTerms& peer);
  [[nodiscard]] MessageTerms own_terms(const Session& session) const;
  [[nodiscard]] std::uint64_t token_for(const PeerAddress& peer, const MessageHello& hello) const;
  template <typename Packet>
  void reply(const PeerAddress& to, const Packet& packet);

  // receive.cc
  void receive(std::span<const Datagram> datagrams);
  void receive_one(const Datagram& datagram, FetchAhead& ahead);
  [[nodiscard]] bool parse_or_drop(const Datagram& datagram, MessageHeader& header);
  void receive_packets(const Datagram& datagram, FetchAhead& ahead);
  void receive_packet(const Datagram& datagram, const MessageHeader& header);
  [[nodiscard]] Session* session_of(const MessageHeader& header, const Datagram& datagram);
  void take_packet(Session& session, const MessageHeader& header, const Datagram& datagram);
  [[nodiscard]] bool authentic(Session& session, const MessageHeader& header, const Datagram& datagram);
  [[nodiscard]] std::uint32_t take_bundle(Session& session, const MessageHeader& header, const Datagram& datagram);
  void schedule_ack(Session& session, const MessageHeader& header, bool in_order);
  [[nodiscard]] std::uint32_t room_of(const Session& session) const;

  // fragments.cc: false if the packet, or this fragment of a bundle, must not count as received.
  [[nodiscard]] bool take_fragment(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool take_incoming(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool take_response(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const MessageFragment& fragment, std::uint32_t length);
  enum class Placed : std::uint8_t { no, yes, complete };
  [[nodiscard]] Placed place(Message& message, Session& session, const Datagram& datagram, std::uint32_t at,
                             const MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool copy_in(const Datagram& datagram, std::uint32_t at, std::uint32_t length, std::uint8_t* to,
                             bool device);
  [[nodiscard]] bool take_buffer(Message& message, const MessageFragment& fragment);
  void take_cancel(Session& session, const MessageFragment& fragment);
  void take_refusal(Session& session, const MessageFragment& fragment);

  // busy.cc
  void tell_busy(Session& session, const MessageFragment& fragment, std::uint16_t refusal = 0);
  void take_busy(Session& session, const MessageFragment& fragment);
  void take_back_packets(Session& session, std::uint32_t index);
  void retry_deferred(Session& session);
  [[nodiscard]] bool refuse(Session& session, const MessageFragment& fragment, RefusalCode code);
  void end_request(Session& session, std::uint32_t index, MessageStatus status);
  void supersede(Session& session, std::uint32_t slot);
  void whole(Session& session, std::uint32_t index);
  void hold_back(Session& session, std::uint32_t index);
  void skip_order(Session& session, std::uint16_t order);
  void deliver_in_order(Session& session);

  // grants.cc
  [[nodiscard]] std::uint32_t grant_bytes(const Session& session) const;
  [[nodiscard]] bool may_grant() const;
  [[nodiscard]] std::uint64_t* owed_with(const Message& message);
  void set_owed(Message& message, std::uint32_t bytes);
  void want_grants(Session& session);
  void begin_grants(Session& session, Message& message);
  void granted_arrived(Session& session, Message& message, std::uint32_t bytes);
  void grant_again(Session& session, Message& message);
  [[nodiscard]] std::uint32_t next_to_grant(Session& session);
  void send_grants(std::span<Outgoing> out, std::size_t& count);
  [[nodiscard]] Nanos stuck_after(const Session& session) const;
  void tick_grants();
  void take_grant(Session& session, const MessageFragment& fragment);

  // acknowledge.cc
  [[nodiscard]] bool take_ack(Session& session, const MessageHeader& header, const std::uint8_t* bytes);
  void acknowledge_group(Session& session, std::uint64_t first, std::uint32_t mask, AckTally& tally);
  void acknowledge_packet(Session& session, std::uint64_t number, AckTally& tally);
  void fragment_acknowledged(Session& session, const SentPacket& packet);
  void sent_whole(Session& session, std::uint32_t index);

  // loss.cc
  void after_acknowledgement(Session& session, const AckTally& tally, const MessageAck& ack, std::uint32_t marked);
  void detect_losses(Session& session);
  void mark_lost(Session& session, std::uint64_t number);
  void mark_all_lost(Session& session);
  void raise_floor(Session& session);
  void start_over(Session& session);
  /// Blocks that only acknowledgements and packets sent again may take, and as many for the latter alone.
  [[nodiscard]] std::uint32_t spare_sent_blocks() const { return std::max(blocks.capacity() / 8, 2U); }
  [[nodiscard]] bool needed(const SentPacket& packet) const;

  // transmit.cc
  std::size_t transmit(std::span<Outgoing> out);
  /// Whether there is another packet to be written, with room for any head.
  [[nodiscard]] bool has_room(std::span<Outgoing> out, std::size_t count) {
    if (count >= out.size()) return false;
    if (out[count].head_capacity >= least_head) return true;
    counters.heads_too_small.add(1);
    return false;
  }
  static void prepare(Outgoing& packet);
  void address(const Session& session, Outgoing& packet);
  [[nodiscard]] bool join(const Session& session, Outgoing& before, std::uint32_t& last, const Outgoing& packet) const;
  void make_ready(Session& session);
  void wake_starved();
  [[nodiscard]] bool has_work(const Session& session) const;
  bool send_from(Session& session, std::span<Outgoing> out, std::size_t& count);
  void promote_acks();
  void take_stray(Outgoing& out);

  // schedule.cc: true if `out` is a packet now.
  [[nodiscard]] bool send_one(Session& session, Outgoing& out);
  [[nodiscard]] bool send_next(Session& session, Draft& draft);
  // True if one more fragment is in `draft`, which may have begun.
  [[nodiscard]] bool send_lost(Session& session, Draft& draft);
  [[nodiscard]] bool send_new(Session& session, MessageList& list, bool own, Draft& draft);
  [[nodiscard]] bool send_probe(Session& session, Draft& draft);
  [[nodiscard]] bool send_bare(Session& session, Outgoing& out);
  [[nodiscard]] bool may_send(Session& session, std::uint32_t bytes, bool joins);
  enum class Purpose : std::uint8_t { fresh, acknowledgement, again };
  [[nodiscard]] bool reserve(Session& session, Purpose purpose);
  [[nodiscard]] bool may_acknowledge(Session& session);
  [[nodiscard]] std::uint32_t head(const Session& session, MessageList& list);
  void pop(MessageList& list);

  // packets.cc
  [[nodiscard]] std::uint32_t payload_of(const Session& session, const Message& message, std::uint32_t fragment) const;
  [[nodiscard]] std::uint32_t packet_bytes(std::uint32_t payload) const;
  [[nodiscard]] bool fits(const Message& message, std::uint32_t fragment, const Draft& draft) const;
  [[nodiscard]] std::uint32_t bytes_of(std::uint32_t payload, const Draft& draft) const;
  void write_fragment(Session& session, std::uint32_t index, std::uint32_t fragment, bool prompt, Draft& draft);
  void finish_packet(Session& session, Draft& draft);
  void write_bare(Session& session, Outgoing& out, std::uint8_t flags);
  void write_ping(Session& session, Outgoing& out);
  void write_busy(Session& session, Outgoing& out);
  void write_grant(Session& session, std::uint32_t index, Outgoing& out);
  SentPacket& write_elicitor(Session& session, std::uint8_t flags, const MessageFragment* fragment, Outgoing& out);
  std::uint8_t* write_header(Session& session, std::uint64_t number, std::uint8_t flags, std::uint32_t payload,
                             std::uint8_t* head);
  void seal(Session& session, std::uint64_t number, std::uint8_t* head, std::uint32_t header, std::uint32_t payload);
  void sent(Session& session, SentPacket& packet, std::uint32_t bytes);
  void count_in_flight(Session& session, SentPacket& packet, std::uint32_t bytes);

  // timers.cc
  enum class Timer : std::uint8_t { due, idle, pacing };
  [[nodiscard]] std::uint32_t wheel_entry(const Session& session, Timer timer) const {
    return index_of(session) * 4 + static_cast<std::uint32_t>(timer);
  }
  void advance();
  void arm(Session& session, Nanos at);
  void disarm(Session& session);
  void on_timer(Session& session);
  void on_silence(Session& session);
  void watch_idle(Session& session);
  void ping(Session& session);
  void on_probe_timeout(Session& session);
  void expire_requests(Session& session);
  [[nodiscard]] Nanos probe_timeout(const Session& session) const;
  [[nodiscard]] bool awaits(const Session& session) const;
  [[nodiscard]] Nanos patience_with(const Session& session) const;
  [[nodiscard]] Nanos next_due(const Session& session) const;
  [[nodiscard]] Nanos next_deadline();
  void begin_waiting(Session& session);

  // messages.cc
  Submitted request(SessionId id, ConstBuffer message, MutableBuffer response, const RequestOptions& options);
  Submitted send(SessionId id, ConstBuffer message, const SendOptions& options);
  CallStatus respond(const MessageId& id, ConstBuffer message, const SendOptions& options);
  CallStatus cancel(const MessageId& id);
  CallStatus release(const MessageId& id);
  void transmitted(std::uint64_t token);
  Submitted begin_own(SessionId id, TransferRole role, ConstBuffer bytes, bool copy);
  [[nodiscard]] CallStatus set_out(Message& message, const Session& session, ConstBuffer bytes, bool copy);
  void enqueue(Session& session, std::uint32_t index);
  void withdraw_own(Session& session, std::uint32_t index, MessageStatus status);

  // lifetime.cc
  [[nodiscard]] std::uint32_t new_message(Session& session, TransferRole role);
  [[nodiscard]] Message* find(const MessageId& id);
  [[nodiscard]] Session* session_of(const Message& message);
  void finish(std::uint32_t index, MessageStatus status);
  void try_free(std::uint32_t index);
  void free_message(std::uint32_t index);
  void give_in(Message& message);
  void free_slot(Session& session, Message& message);
  void count_unread(Session& session, Message& message);
  void no_longer_unread(Message& message);
  void end_response(std::uint32_t index, MessageStatus status);
  void withdraw_incoming(std::uint32_t index);

  // events.cc
  void queue_event(std::uint32_t message);
  void queue_event(EventLink link);
  std::size_t poll(std::span<MessageEvent> events, std::size_t requests);
  [[nodiscard]] bool is_request(EventLink link) const;
  void set_aside(std::uint32_t request);
  [[nodiscard]] bool message_event(std::uint32_t index, MessageEvent& event);
  [[nodiscard]] bool session_event(EventLink link, MessageEvent& event);
};

/// What a cancel and a grant have in place of a fragment's number.
inline constexpr std::uint32_t kCancelFragment = 0xffffffffU;
inline constexpr std::uint32_t kGrantFragment = 0xfffffffeU;

}  // namespace warpline
