// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "warpline/base/time/pacing_wheel.h"
#include "warpline/base/time/rtt_estimator.h"
#include "warpline/base/units.h"
#include "warpline/message/internal/cc/congestion_control.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/internal/parts/packet_window.h"
#include "warpline/message/internal/parts/sent_packets.h"
#include "warpline/message/types.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

enum class SessionPhase : std::uint8_t { free, opening, established, lost };

/// A message or response of the peer that found no room, or go-back-n, is not taken at all: it is told so beyond all
/// windows.
struct BusyNotice {
  std::uint32_t sequence = 0;
  std::uint8_t slot = 0;
  bool response = false;
  std::uint16_t refusal = 0;  ///< a RefusalCode; 0: there is no room now
};
inline constexpr std::uint32_t kBusyNotices = 4;

/// First in, first out, linked through the messages or whatever the indices are of.
struct MessageList {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
};

struct SlotUse {
  std::uint32_t sequence = 0;
  std::uint32_t message = kNone;
};

inline constexpr std::uint32_t kSlots = 64;  ///< messages of one end of a session under way at once
inline constexpr std::uint16_t kOrderSpan = 64;

/// By slot; slot 0 lies last, beside the first of what follows.
class SlotsBackwards {
 public:
  [[nodiscard]] SlotUse& operator[](std::uint32_t slot) { return uses_[kSlots - 1 - slot]; }
  [[nodiscard]] const SlotUse& operator[](std::uint32_t slot) const { return uses_[kSlots - 1 - slot]; }
  [[nodiscard]] auto begin() { return uses_.begin(); }
  [[nodiscard]] auto end() { return uses_.end(); }
  void fill(const SlotUse& use) { uses_.fill(use); }

 private:
  std::array<SlotUse, kSlots> uses_;
};

/// One end of a session. SessionLife and Handshake begin all of it; then each group of fields is of whom its comment
/// names. Times are the endpoint's inner clock. Of thousands of sessions none is in the cache: what each request uses
/// lies together, from the end of `sent` to the beginning of `received`, see prefetch().
struct alignas(64) Session {
  // Recovery's.
  SentPackets sent;
  std::uint64_t first_in_flight = 0;  ///< none before it is in flight
  std::uint64_t acked_end = 0;        ///< all below were seen as acknowledged or given up
  std::uint64_t newest_acked = 0;     ///< largest number acknowledged, plus one
  std::uint64_t room_number = 0;      ///< packet that said `room`
  std::uint32_t room = 0;             ///< bytes of own messages that the peer takes
  std::uint32_t in_flight_bytes = 0;
  std::uint32_t in_flight_packets = 0;
  std::uint32_t own_in_flight = 0;  ///< bytes of own messages
  std::uint32_t lost_packets = 0;   ///< in the state lost
  std::uint32_t marked_seen = 0;
  Nanos last_sent;   ///< of those that want an acknowledgement; go-back-n: when the timer began to run
  Nanos latest_rtt;  ///< with the peer's delay
  Nanos reorder_at = kNever;
  Nanos max_ack_delay;  ///< of the peer
  RttEstimator rtt;
  CcOutput allowed;
  CongestionControl congestion{CcConfig{}};

  // Told apart by every packet.
  std::uint64_t cookie = 0;
  PeerAddress peer;
  SessionPhase phase = SessionPhase::free;
  std::uint8_t unanswered = 0;  ///< probes and timeouts since the last acknowledgement
  std::uint8_t busy_count = 0;
  std::uint8_t reorder_windows = 1;  ///< RFC 8985, section 6.2: quarters of the least round trip
  bool confirmed = false;            ///< the peer has shown the cookie
  bool ordered = false;
  bool go_back_n = false;
  LossReason doubt = LossReason::none;  ///< why the peer may be gone: somebody said so since it was heard
  bool peer_grants = false;             ///< what is long goes there as it is granted
  bool bundles = false;                 ///< small messages go there several in a packet
  bool forgotten = false;
  bool reordering = false;
  std::uint8_t vanished = 0;  ///< times that long packets were lost and none arrived
  // Ready to send: who wants something sent sets these, who writes it clears them.
  bool ready = false;
  bool starved = false;  ///< found no block of sent packets
  bool ack_now = false;
  bool ack_listed = false;
  bool ping = false;
  bool probe = false;  ///< one packet may leave beyond the window
  bool accept_due = false;
  bool path_probe = false;  ///< a probe of the path is to be sent
  bool reply_turn = false;  ///< responses and own messages take turns
  bool room_blocked = false;
  bool go_away_due : 1 = false;     ///< the peer is to be told that this end drains
  bool peer_leaves : 1 = false;     ///< the peer drains
  std::uint8_t high_sent : 3 = 0;   ///< packets of what is high since the last of what is normal, while some waits
  std::uint8_t high_begun : 3 = 0;  ///< the same of messages that got a slot; SlotQueue's
  std::uint32_t generation = 0;     ///< of the id
  std::uint32_t epoch = 0;          ///< counts handshakes; messages of another are not the session's any more
  std::uint32_t remote = 0;         ///< the peer's id for it
  std::uint32_t fragment_bytes = 0;
  std::uint32_t datagram_bytes = 0;  ///< that its path is known to carry; PathTable's, as the next
  std::uint16_t base_bytes = 0;      ///< that every path carries
  std::uint16_t most_bytes = 0;      ///< that both ends take
  std::uint32_t ready_next = kNone;
  std::uint32_t address_group = kNone;  ///< PeerGroups'
  MessageList replies;
  MessageList own;
  MessageList high_replies;
  MessageList high_own;
  std::uint64_t free_slots = ~std::uint64_t{0};

  // Timers', and when something is due for them.
  Nanos quiet_from;      ///< heard last, or began to wait; attended()
  Nanos doubted_at;      ///< when `doubt` was set last; attended()
  Nanos armed = kNever;  ///< when `timer` fires
  WheelHandle timer;
  Nanos first_deadline = kNever;  ///< of requests; never later than the earliest
  Nanos retry_at = kNever;        ///< of deferred messages

  // Received.
  Nanos newest_at;                 ///< when the newest packet arrived that wants an acknowledgement
  std::uint32_t newest = 0;        ///< its number, the lower half
  std::uint32_t latest_delay = 0;  ///< of the peer in latest_rtt, nanoseconds; Recovery's
  Nanos ack_at;
  std::uint32_t ack_next = kNone;
  std::uint32_t unacknowledged = 0;  ///< packets that wait for an acknowledgement
  std::uint32_t marked = 0;
  std::uint32_t room_told = 0;
  std::uint64_t unread = 0;          ///< bytes of messages that the application has not given back
  std::uint16_t expected_order = 0;  ///< of the peer
  std::uint32_t places = 0;  ///< messages of the peer in the pool, also those that a session before this one left
  PacketWindow received;

  // From here on what few requests use, but for the slots, which are of Transfers and Reassembly.
  std::uint32_t unfinished = 0;    ///< ends that wait for the transport
  std::uint16_t open_streams = 0;  ///< responses of streams that the application has: pieces may still come
  std::uint16_t next_order = 0;    ///< of the next own message
  std::uint16_t first_order = 0;   ///< the oldest own message not done
  std::uint64_t orders_done = 0;   ///< bit i: first_order + i is done
  std::uint64_t orders_void = 0;   ///< bit i: expected_order + i will not come
  std::uint16_t last_order = 0;    ///< while this end drains: the last one of the peer that had begun to come before
  MessageList held_back;           ///< of the peer, by order
  MessageList queued;              ///< own ones without a slot: some only while has_slot_free() says no
  MessageList high_queued;         ///< the same of those that are high
  SlotsBackwards outgoing;
  std::array<SlotUse, kSlots> incoming;

  std::uint64_t next_lost = 0;       ///< none before it is lost
  std::uint64_t vanish_from = 0;     ///< a packet from here on that vanishes counts in `vanished`
  Nanos send_at;                     ///< pacing: not before
  WheelHandle pacing_timer;          ///< in the wheel while the session waits for `send_at`; Timers'
  bool widened = false;              ///< reorder_windows grew since `lost_at`
  std::uint8_t reorder_persist = 0;  ///< times that packets are found lost until it is one again
  std::uint16_t losses = 0;          ///< packets found lost since `lost_at`, less those that were late
  std::uint16_t vanish_share = 0;    ///< of 65536: how often long packets were lost, moving average; Recovery's
  Nanos lost_at;                     ///< when packets were found lost first, of those that may yet prove to be late
  std::uint32_t starved_next = kNone;
  std::uint32_t wanting_next = kNone;
  std::array<BusyNotice, kBusyNotices> busy;  ///< due
  bool starved_listed = false;                ///< and is called when there are more
  bool wants_grants = false;                  ///< messages of the peer may wait for grants
  std::uint8_t grant_turn = 0;                ///< slot of the peer's, or kSlots and one of ours, that is next
  bool urgent = false;                        ///< ready, with messages that are high
  std::uint32_t urgent_next = kNone;
  Nanos stalled_at = kNever;  ///< attended(): a message of the peer is given up; never later than the earliest
  Nanos unanswered_from;      ///< attended(): the first of the probes that `unanswered` counts
  Nanos kept_at;              ///< attended(): this end kept the peer from sending, last

  // Handshake, idleness and end.
  WheelHandle idle_timer;  ///< always in the wheel while established
  bool opened_here = false;
  bool hello_due = false;     ///< the next hello
  std::uint8_t hellos = 0;    ///< sent
  bool opened_event = false;  ///< in the queue of events
  bool lost_event = false;
  bool lost_pending = false;  ///< to be queued when all messages have ended
  LossReason reason = LossReason::none;
  std::uint32_t opened_next = kNone;
  std::uint32_t lost_next = kNone;
  std::uint32_t half_open_next = kNone;  ///< SessionTable's, as the next
  std::uint32_t half_open_before = kNone;
  std::uint32_t path = kNone;  ///< PathTable's, as the next
  std::uint32_t path_next = kNone;
  std::uint32_t path_before = kNone;
  std::uint32_t token_time = 0;
  Nanos opened;  ///< attended()
  Nanos next_hello = kNever;
  std::uint64_t nonce = 0;
  std::uint64_t server_nonce = 0;
  packet::MessageProof proof{};  ///< in the accept that is sent
  std::uint64_t token = 0;
  std::uint64_t context = 0;
  // PathValidation's.
  Nanos challenge_from;          ///< an address of the peer's is asked about not before
  std::uint64_t moved_from = 0;  ///< no older packet of the peer moves the session
};

/// What a request or its response uses of a session that is not in the cache when there are many.
inline void prefetch(const Session& session) {
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  constexpr std::uintptr_t kLine = 64;
  const std::uintptr_t begin = address(&session) + SentPackets::kSeldomUsed;
  const std::uintptr_t end = address(&session.received) + PacketWindow::kOftenUsed;
  for (std::uintptr_t line = begin; line < end; line += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(line), 1);
  }
  __builtin_prefetch(session.incoming.data(), 1);
}

/// What the peer is told: it counts all below as given up. Go-back-n gives up all that a timeout found lost at once,
/// though it is still to be sent again.
[[nodiscard]] inline std::uint64_t floor_of(const Session& session) {
  const std::uint64_t floor = session.sent.floor();
  return session.go_back_n && session.first_in_flight > floor ? session.first_in_flight : floor;
}

/// Packets in a row, or messages that get slots, of which at most all but one are high while others wait.
inline constexpr std::uint8_t kPriorityTurns = 8;

/// Whether one of the lists has messages.
[[nodiscard]] inline bool any(const MessageList& a, const MessageList& b) {
  static_assert(kNone == 0xffffffff);
  return (a.first & b.first) != kNone;
}
/// Whether messages wait that are high.
[[nodiscard]] inline bool has_high(const Session& session) { return any(session.high_replies, session.high_own); }

/// Whether something is to be sent, if the windows allow it.
[[nodiscard]] inline bool has_work(const Session& session) {
  return session.lost_packets != 0 || any(session.replies, session.own) || has_high(session) || session.ack_now ||
         session.ping || session.busy_count != 0 || session.probe || session.accept_due || session.path_probe ||
         session.go_away_due;
}

/// Whether the peer's silence means something.
[[nodiscard]] inline bool awaits(const Session& session) {
  return session.in_flight_packets != 0 || session.free_slots != ~std::uint64_t{0} ||
         any(session.replies, session.high_replies);
}

/// Whether an own message may begin now.
[[nodiscard]] inline bool has_slot_free(const Session& session) {
  return session.free_slots != 0 &&
         !(session.ordered && static_cast<std::uint16_t>(session.next_order - session.first_order) >= kOrderSpan);
}

/// Something is to be awaited: silence counts from now, if nothing was before.
inline void begin_waiting(Session& session, Nanos attended) {
  if (!awaits(session)) session.quiet_from = attended;
}

/// Bytes that the peer may send beyond what the application has not given back.
[[nodiscard]] inline std::uint32_t room_of(const Session& session, std::uint32_t receive_window) {
  return session.unread >= receive_window ? 0 : receive_window - static_cast<std::uint32_t>(session.unread);
}

/// Nothing is known of what the path bears.
inline void begin_congestion_control(Session& session, CcConfig config) {
  config.mtu = session.most_bytes;
  session.congestion = CongestionControl(config);
  session.allowed = session.congestion.output();
}

/// From here on its packets are so long; with protection each has a tag.
inline void set_datagram_bytes(Session& session, std::uint32_t bytes, bool is_protected) {
  session.datagram_bytes = bytes;
  // Two words of acknowledgement always find room.
  session.fragment_bytes = bytes - packet::MessageHeader::kLength - packet::MessageAck::kLength - 2 * 8 -
                           packet::MessageFragment::kLength - (is_protected ? packet::kMessageTagLength : 0);
}

/// Whether the peer has room for a packet.
[[nodiscard]] inline bool may_send_more(const Session& session, std::uint32_t receive_window) {
  return room_of(session, receive_window) >= session.most_bytes;
}

static_assert(sizeof(Session) <= 2112, "a session takes 33 lines, beside its places in the wheel and the tables");
static_assert((sizeof(Session) & (sizeof(Session) - 1)) != 0,
              "they lie one behind the other: a power of two apart, the same line of each has few places in a cache");

}  // namespace warpline::message
