// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/address.h"
#include "warpline/base/time/pacing_wheel.h"
#include "warpline/base/time/rtt_estimator.h"
#include "warpline/base/units.h"
#include "warpline/stream/internal/connection.h"
#include "warpline/stream/internal/received_ranges.h"
#include "warpline/stream/internal/segment_reading.h"
#include "warpline/stream/internal/send/congestion_window.h"
#include "warpline/stream/internal/send/sent_segments.h"
#include "warpline/stream/internal/sequence.h"
#include "warpline/stream/send_events.h"

namespace warpline::stream {

/// A connection that sends, from our SYN on. Offsets count bytes of our stream from 0; the FIN has the one behind them.
struct SendConnection {
  /// How far it is; `fin_acknowledged`, `peer_ended` and the segments on their way tell RFC 9293's states of the end
  /// (3.3.2) apart.
  enum class Phase : std::uint8_t {
    free,          ///< the place is none's
    syn_sent,      ///< our SYN is on its way
    syn_received,  ///< the peer's crossed it, and its acknowledgement of ours is awaited
    open,          ///< ESTABLISHED, CLOSE-WAIT, and all states of an end until both sides know of it
    time_wait,     ///< both ended; the peer's last segments may still come
    over,          ///< ended otherwise, known to the application alone
  };
  /// What is done about losses.
  enum class Recovery : std::uint8_t { none, fast, timeout };

  ConnectionKey key;
  MacAddress peer_mac;
  Phase phase = Phase::free;
  SendState state = SendState::opening;
  bool wants_event = false;            ///< it stands in the queue of events
  bool wants_turn = false;             ///< it stands in the queue of those that may have something to send
  bool wants_syn = false;              ///< our SYN is to be sent, or again
  bool wants_acknowledgement = false;  ///< the peer is to be told what has arrived, with bytes or without
  bool wants_window_probe = false;     ///< the peer is to be asked for its window
  bool wants_tail_probe = false;
  bool override_small = false;  ///< a short segment has waited long enough (RFC 9293, 3.8.6.2.1)
  bool told = false;            ///< the application knows that it ended
  bool selective = false;       ///< SACK was agreed upon
  bool timestamps = false;      ///< of RFC 7323, agreed upon
  bool closing = false;         ///< nothing is offered any more
  bool fin_sent = false;
  bool fin_acknowledged = false;
  bool syn_lost = false;        ///< our SYN, or the answer to it, was sent again
  bool peer_ended = false;      ///< the peer's FIN arrived
  bool peer_was_first = false;  ///< it arrived before ours was sent
  bool window_limited = false;  ///< when it last sent, congestion control kept it from more
  std::uint8_t peer_scale = 0;
  std::uint8_t attempts = 0;  ///< timeouts in a row
  std::uint32_t generation = 0;
  std::uint32_t next_free = 0;  ///< place in the list of free ones

  // What we send (RFC 9293, 3.3.1).
  std::uint32_t initial = 0;              ///< the sequence number of our SYN
  std::uint32_t segment_bytes = 536;      ///< most payload of a segment, its options deducted
  std::uint64_t acknowledged = 0;         ///< SND.UNA
  std::uint64_t next = 0;                 ///< SND.NXT
  std::uint64_t offered = 0;              ///< bytes that there are
  std::uint64_t window_end = 0;           ///< behind the last byte that the peer has room for
  std::uint64_t largest_window = 0;       ///< that the peer ever announced
  std::uint32_t window_sequence = 0;      ///< SND.WL1
  std::uint64_t window_acknowledged = 0;  ///< SND.WL2
  SentSegments segments;
  CongestionWindow congestion;

  // What we receive.
  std::uint32_t receive_next = 0;       ///< RCV.NXT
  std::uint32_t timestamp = 0;          ///< TS.Recent
  std::uint32_t last_acknowledged = 0;  ///< Last.ACK.sent of RFC 7323

  // Losses (RFC 8985).
  Recovery recovery = Recovery::none;
  std::uint64_t recovery_end = 0;  ///< recovery ends when this is acknowledged
  RttEstimator round_trip;
  Nanos delivered_sent_at{};          ///< RACK.xmit_ts: of the segments that arrived, when the last was sent
  std::uint64_t delivered_end = 0;    ///< RACK.end_seq
  Nanos delivered_round_trip{};       ///< RACK.rtt
  std::uint64_t furthest = 0;         ///< RACK.fack: behind the furthest byte that arrived
  bool reordered = false;             ///< RACK.reordering_seen
  std::uint8_t reordering_steps = 1;  ///< RACK.reo_wnd_mult
  std::uint8_t reordering_persist = 0;
  std::uint64_t reordering_round_end = 0;  ///< a step more is taken once a round trip
  bool tail_probed = false;                ///< TLP.end_seq is set
  bool tail_probe_was_again = false;       ///< TLP.is_retrans
  std::uint64_t tail_probe_end = 0;
  ByteRange known_stored[4] = {};        ///< of the last selective acknowledgement, what has been entered
  std::uint32_t duplicates = 0;          ///< acknowledgements of nothing new, without SACK
  std::uint64_t left_by_duplicates = 0;  ///< bytes that these say have left the network

  Nanos user_timeout{};  ///< without any progress before it is given up: R2 of RFC 9293, 3.8.3

  // When what is due; kNever if not.
  Nanos retransmit_at = kNever;  ///< of SYN, segments, or the question for a window
  Nanos tail_probe_at = kNever;
  Nanos reordering_at = kNever;  ///< a segment that did not arrive will not come late any more
  Nanos expire_at = kNever;      ///< of FIN-WAIT-2 and TIME-WAIT
  Nanos timer_at = kNever;       ///< when `timer` fires
  WheelHandle timer;
  Nanos progress_at{};  ///< when the peer last acknowledged something, or began to have something to do
  Nanos heard_at{};     ///< when a segment of the peer's last fitted
  Nanos sent_at{};      ///< when something with bytes was last sent
  ChallengeLimit challenges;

  /// Makes it a new one of these ends. Queues may still hold the place: what they tell of the one before does no harm
  /// to the next.
  void renew(const ConnectionKey& ends) {
    const std::uint32_t count = generation;
    const bool has_event = wants_event;
    const bool has_turn = wants_turn;
    *this = SendConnection{};
    key = ends;
    generation = count;
    wants_event = has_event;
    wants_turn = has_turn;
  }

  [[nodiscard]] std::uint32_t sequence(std::uint64_t offset) const { return sequence_of(offset, initial + 1); }
  [[nodiscard]] std::uint64_t in_flight() const {
    const std::uint64_t flying = segments.bytes(SegmentFate::flying);
    return flying - (left_by_duplicates < flying ? left_by_duplicates : flying);
  }
  /// Bytes of payload that were acknowledged.
  [[nodiscard]] std::uint64_t bytes_acknowledged() const { return acknowledged - (fin_acknowledged ? 1 : 0); }
};

}  // namespace warpline::stream
