// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/time/pacing_wheel.h"
#include "warpline/base/units.h"
#include "warpline/stream/internal/receive_state.h"
#include "warpline/stream/internal/reply.h"
#include "warpline/stream/internal/segment_reading.h"
#include "warpline/stream/internal/sequence.h"
#include "warpline/stream/stream_events.h"

namespace warpline::stream {

/// Lets ten challenges a second out for one connection: who is asked by an acknowledgement of what is true answers
/// right, if it sent what was odd itself (RFC 5961), and nobody learns of one connection by another (section 7).
class ChallengeLimit {
 public:
  /// Returns false if the last one was too lately.
  [[nodiscard]] bool may_challenge(Nanos now) {
    constexpr std::int64_t kBetween = 100'000'000;
    if (last_.value != 0 && now.value - last_.value < kBetween) return false;
    last_ = now;
    return true;
  }

 private:
  Nanos last_{};
};

/// A connection, from the peer's SYN on. It sends no bytes, and its FIN only behind the peer's, so that TIME-WAIT is
/// the peer's part.
struct Connection {
  /// How far it is with what we send, which is a SYN and a FIN (RFC 9293, 3.3.2).
  enum class Phase : std::uint8_t {
    free,          ///< the place is none's
    syn_received,  ///< our SYN is on its way
    established,   ///< our SYN arrived; ESTABLISHED and CLOSE-WAIT
    last_ack,      ///< our FIN is on its way, behind the peer's
    over,          ///< reset or timed out, known to the application alone
    leaving,       ///< known to nobody but a consumer on the board, which may still read it, and its lane
  };

  ConnectionKey key;
  PeerEnd peer;
  Phase phase = Phase::free;
  ConnectionState state = ConnectionState::open;
  bool touched = false;       ///< a segment of it came in this burst
  bool offered = false;       ///< its handshake is finished by whichever receiver claims it
  bool wants_event = false;   ///< it stands in the queue of events
  bool wants_reply = false;   ///< it stands in the queue of replies
  bool written = false;       ///< its reply is the one that its lane wrote last
  bool wants_probe = false;   ///< the peer is to be asked for a sign of life
  bool on_board = false;      ///< a consumer may read it
  bool at_lane = false;       ///< an order that adds it was sent to the lane
  bool consumed_all = false;  ///< its consumer is through with it
  bool end_awaited = false;   ///< and has seen its end, of which a record of the lane's will tell
  std::uint8_t attempts = 0;  ///< retransmissions of our SYN or FIN so far
  std::uint8_t probes = 0;    ///< questions for a sign of life since the last one
  std::uint32_t generation = 0;
  std::uint32_t next_free = 0;   ///< place in the list of free ones
  std::uint64_t consumed = 0;    ///< bytes that the application has released
  std::uint64_t released = 0;    ///< bytes that a consumer has released, also some that are not known of here yet
  std::uint64_t urgent_end = 0;  ///< behind the last byte that the peer called urgent
  std::uint64_t again_until =
      0;  ///< number of its last segment but resets that a lane is to take once more; see LaneLink
  std::uint64_t replied_in = 0;   ///< the lane's first burst that may know of the last reply that was written here
  Nanos acknowledge_at = kNever;  ///< when a delayed acknowledgement is due
  Nanos retransmit_at = kNever;   ///< when our SYN or FIN is sent again
  Nanos last_heard{};             ///< when a segment of the peer's last fitted
  ChallengeLimit challenges;
  Nanos timer_at = kNever;  ///< when `timer` fires
  WheelHandle timer;
  ReceiveState receive;

  /// Makes it a new one of these ends. Queues may still hold the place: what they tell of the one before does no harm
  /// to the next.
  void renew(const ConnectionKey& ends) {
    const Connection before = *this;
    *this = Connection{};
    key = ends;
    generation = before.generation;
    touched = before.touched;
    wants_event = before.wants_event;
    wants_reply = before.wants_reply;
  }

  /// Whether it has ends in the table, segments of its peer and timers. All other phases have neither.
  [[nodiscard]] bool is_linked() const {
    return phase == Phase::syn_received || phase == Phase::established || phase == Phase::last_ack;
  }
  /// Returns the next sequence number that we would send.
  [[nodiscard]] std::uint32_t send_next() const { return peer.sequence + (phase == Phase::last_ack ? 1 : 0); }
};

}  // namespace warpline::stream
