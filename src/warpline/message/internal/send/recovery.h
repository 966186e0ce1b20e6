// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/core/session.h"
#include "warpline/message/internal/parts/sent_packets.h"
#include "warpline/message/internal/transfer/transfers.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// The packets that sessions have sent, from their number to their acknowledgement or loss, and what both tell the
/// congestion controller. A session's in_flight_* and lost_packets count its packets in these states. A packet is lost
/// by packets sent later that arrived (RACK, RFC 8985; packet threshold as RFC 9002, section 6.1.1), or by a timeout.
class Recovery {
 public:
  Recovery(EndpointCore& core, Transfers& transfers) : core_(core), transfers_(transfers) {}

  // What is sent.
  enum class Purpose : std::uint8_t { fresh, acknowledgement, again };
  /// A number, and if need be a block, for what is sent next; false, with Session::starved if it is blocks that lack.
  /// What is new leaves some of both to acknowledgements, and these to what is sent again: by that alone both become
  /// free.
  [[nodiscard]] bool reserve(Session& session, Purpose purpose);
  /// For an acknowledgement alone, which needs a number, but no block.
  [[nodiscard]] bool may_acknowledge(Session& session);
  /// The packet of the number reserved.
  [[nodiscard]] SentPacket& add(Session& session) { return session.sent.add(core_.blocks); }
  /// A packet that wants no acknowledgement takes the number reserved.
  [[nodiscard]] std::uint64_t skip(Session& session) { return session.sent.skip(core_.blocks); }
  /// The packet counts as in flight.
  void count_in_flight(Session& session, SentPacket& packet, std::uint32_t bytes) {
    packet.sent = core_.context.now();
    packet.bytes = static_cast<std::uint16_t>(bytes);
    packet.state = SentState::in_flight;
    session.in_flight_bytes += bytes;
    ++session.in_flight_packets;
    if (packet.own) session.own_in_flight += bytes;
    if (session.allowed.pacing_gap.value != 0) {
      const std::int64_t gap = session.allowed.pacing_gap.value * bytes / session.most_bytes;
      session.send_at = Nanos{std::max(session.send_at.value, core_.context.now().value) + gap};
    }
  }
  /// The same of the first in its datagram: from now on an acknowledgement is waited for.
  void sent(Session& session, SentPacket& packet, std::uint32_t bytes) {
    // Go-back-n's timer runs for the oldest (RFC 6298, section 5.1): whatever leaves meanwhile does not put it off.
    const bool runs = session.go_back_n && session.in_flight_packets != 0;
    if (session.in_flight_packets == 0) begin_again_slowly(session, bytes);
    count_in_flight(session, packet, bytes);
    if (!runs) session.last_sent = core_.context.now();
    session.probe = false;
    core_.timers.arm(session, Nanos{core_.context.now().value + core_.timers.probe_timeout(session).value});
  }

  /// The session's newest packet, if any waits, shares a datagram that is longer than the base.
  void mark_newest_large(Session& session) {
    const std::uint64_t newest = session.sent.next() - 1;
    if (waits(session, newest)) session.sent.at(core_.blocks, newest).large = true;
  }

  // What is sent again.
  /// The next lost packet whose fragment is needed; nullptr if there is none.
  [[nodiscard]] SentPacket* next_lost(Session& session);
  /// Its fragment is sent again.
  void resent(Session& session, SentPacket& packet);
  /// A packet in flight to be sent once more to hear of the peer: at first the newest (RFC 8985, section 7.3), then the
  /// oldest. None twice; nullptr if there is none.
  [[nodiscard]] SentPacket* next_to_probe(Session& session);
  /// The fragment written last is such a packet's.
  void sent_probe(Session& session) { session.sent.at(core_.blocks, session.sent.next() - 1).state = SentState::probe; }
  /// A ping must leave and finds no number or block: what is in flight counts as lost, and is sent again.
  [[nodiscard]] bool reserve_ping(Session& session);
  /// The peer acknowledges nothing: if blocks are scarce, the session gives back all that it holds, and begins again at
  /// what is acknowledged. False: they are not, or it holds no shared one.
  [[nodiscard]] bool give_way(Session& session);
  /// The last resort: what is lost cannot be sent again, since there is no number or place for it and nothing in flight
  /// that will free one. All packets are forgotten, and their places with them.
  void start_over(Session& session);

  // What is acknowledged.
  /// False if it acknowledges what was never sent.
  [[nodiscard]] bool take_ack(Session& session, const packet::MessageHeader& header, const std::uint8_t* bytes);
  /// Packets of this message are not waited for any longer.
  void take_back(Session& session, std::uint32_t message, std::uint32_t generation);
  /// The session is lost.
  void forget(Session& session);
  /// The peer is somewhere else: what is in flight went where it was, and is sent again, which says nothing of
  /// congestion. At another address, not only another port, nothing is known of the path (RFC 9000, section 9.4).
  void change_path(Session& session, bool other_address);
  /// This end may be at another address: of how much its path bears it knows nothing. What is in flight has arrived, or
  /// is found lost as ever, and round trips tell soon enough of themselves.
  void begin_elsewhere(Session& session);
  /// Whether any packet in flight is longer than the base.
  [[nodiscard]] bool large_in_flight(Session& session);
  /// Probes the path again if the session is the one to do so (RFC 8899).
  void seek_path(Session& session) {
    if (core_.paths.seek(session)) core_.ready.add(session);
  }

  // Time.
  /// Finds what is lost, all that arrived here until `heard` being known.
  void detect_losses(Session& session, Nanos heard);
  /// Go-back-n's timeout (RFC 6298, section 5.4), or there is no number or place left to probe with: all that is in
  /// flight counts as lost.
  void on_timeout(Session& session);
  /// Lets go of packets at the front that are settled or not worth waiting for.
  void raise_floor(Session& session);

 private:
  /// What acknowledgements of one packet came to.
  struct Tally {
    std::uint32_t bytes = 0;
    std::uint32_t packets = 0;
    bool spurious = false;
    std::uint64_t newest = 0;  ///< number plus one
    Nanos newest_sent;
  };

  void acknowledge_group(Session& session, std::uint64_t first, std::uint32_t mask, Tally& tally);
  void acknowledge_packet(Session& session, std::uint64_t number, Tally& tally);
  void after_acknowledgement(Session& session, const Tally& tally, const packet::MessageAck& ack, std::uint32_t marked);
  /// Who begins with less sends little, and does not ask what others send.
  static constexpr std::uint32_t kAsksFrom = 256;  ///< bytes in flight of a packet

  /// After a while without packets nobody knows what the path bears (RFC 5681, section 4.1).
  void begin_again_slowly(Session& session, std::uint32_t bytes) {
    if (bytes < kAsksFrom) {
      if (session.allowed.window_bytes <= core_.context.config.cc.initial_window_bytes) return;
    } else if (session.newest_acked == 0) {
      return begin_slowly(session);
    } else if (session.allowed.window_bytes <= session.datagram_bytes) {
      return;
    }
    const std::int64_t idle = core_.context.now().value - session.last_sent.value;
    if (!session.rtt.known() || idle < core_.context.config.min_rto.value ||
        idle < session.rtt.timeout(Nanos{}).value + session.max_ack_delay.value) {
      return;
    }
    begin_slowly(session);
  }
  /// With no more than its share among others that go the same way. Who had less keeps it.
  [[gnu::noinline]] void begin_slowly(Session& session) {
    const double window = core_.paths.initial_window(session);
    if (session.allowed.window_bytes > window) session.allowed = session.congestion.on_idle(window);
  }
  void mark_lost(Session& session, std::uint64_t number);
  /// A packet longer than the base was lost: a black hole has opened if such are lost again and again and none arrives.
  void note_vanished(Session& session, std::uint64_t number);
  /// One has arrived: the times that some vanished before it were loss as it happens.
  static void note_large_arrived(Session& session) {
    constexpr std::uint32_t kWeight = 64;  // of the last so many
    if ((session.vanish_share | session.vanished) == 0) [[likely]]
      return;
    std::uint32_t share = session.vanish_share - session.vanish_share / kWeight;
    if (session.vanished != 0) [[unlikely]]
      share = std::min(share + session.vanished * (0x10000U / kWeight), 0xffffU);
    session.vanish_share = static_cast<std::uint16_t>(share);
    session.vanished = 0;
  }
  void path_probe_arrived(Session& session, const SentPacket& packet);
  void path_probe_lost(Session& session, SentPacket& packet);
  void fall_back(Session& session);
  void cut_smaller(Session& session);
  /// Packets were found lost: what the congestion controller had before may come back.
  void note_loss(Session& session);
  /// One of these was late, not lost (RFC 3522). If all were, so was what the congestion controller made of them.
  void note_late(Session& session);
  [[nodiscard]] bool waits(const Session& session, std::uint64_t number) const {
    return (session.sent.unsettled(core_.blocks, number) >> (number % SentBlock::kPackets) & 1) != 0;
  }
  static void leave_flight(Session& session, const SentPacket& packet) {
    session.in_flight_bytes -= packet.bytes;
    --session.in_flight_packets;
    if (packet.own) session.own_in_flight -= packet.bytes;
  }
  /// Blocks that only acknowledgements and packets sent again may take, and as many for the latter alone.
  [[nodiscard]] std::uint32_t spare_blocks() const { return std::max(core_.blocks.capacity() / 8, 2U); }

  EndpointCore& core_;
  Transfers& transfers_;
};

}  // namespace warpline::message
