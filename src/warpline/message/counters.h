// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "warpline/base/enum_list.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// Why an endpoint did not take a datagram. Each has a counter; names are keys of the JSON report.
#define WARPLINE_MESSAGE_DROPS(X)                                                                   \
  X(truncated, "ends inside the header")                                                            \
  X(not_ours, "does not begin as our packets do")                                                   \
  X(wrong_version, "of a version that is not spoken here")                                          \
  X(type, "of an unknown type")                                                                     \
  X(malformed, "lengths or fields that contradict each other")                                      \
  X(unknown_session, "for a session that is not there")                                             \
  X(wrong_peer, "from another address than the session's peer")                                     \
  X(wrong_cookie, "without the session's cookie")                                                   \
  X(not_authentic, "does not decrypt")                                                              \
  X(unknown_key, "a hello that names a key that is not here")                                       \
  X(duplicate, "a packet number that came before")                                                  \
  X(stale, "a packet number from before the window")                                                \
  X(beyond_window, "a packet number, fragment or message beyond what the sender may use")           \
  X(out_of_order, "go-back-n: not the next packet")                                                 \
  X(bad_acknowledgement, "acknowledges what was never sent")                                        \
  X(bad_fragment, "an offset, length or total that the message cannot have")                        \
  X(bad_handshake, "a handshake packet that answers nothing that was asked, or with a wrong proof") \
  X(no_session, "no room for another session")                                                      \
  X(over_quota, "a session more than one address or its prefix may have")                           \
  X(no_message, "the pool of messages is used up")                                                  \
  X(no_buffer, "no receive memory is free")                                                         \
  X(over_share, "more messages or receive memory than is left for this peer's address")             \
  X(no_reply_room, "more packets of strangers than are answered")                                   \
  X(not_accepting, "a session offered to an endpoint that takes none")                              \
  X(going_away, "a one-way message that came although this end drains")                             \
  X(not_authorized, "a session that the application refused")                                       \
  X(no_streams, "a piece of a stream for an endpoint that takes none")                              \
  X(too_long, "a one-way message longer than max_message_bytes")                                    \
  X(misdirected, "for a session of another endpoint at this address")                               \
  X(bad_path_response, "an answer to a challenge that did not go to the address that it came from")

/// Enumerators as listed in WARPLINE_MESSAGE_DROPS.
enum class MessageDrop : std::uint8_t { WARPLINE_MESSAGE_DROPS(WARPLINE_ENUM_VALUE) };

/// How many reasons there are.
inline constexpr std::size_t kMessageDrops = 0 WARPLINE_MESSAGE_DROPS(WARPLINE_ENUM_COUNT);

[[nodiscard]] std::string_view name(MessageDrop reason);     ///< the enumerator, as in the report
[[nodiscard]] std::string_view meaning(MessageDrop reason);  ///< its sentence, for people

/// Written by the endpoint's thread, read by any.
struct EndpointCounters {
  /// Taken, a bundle if any of it was. With `drops`, less fragments_dropped and packets_behind, all datagrams seen.
  Counter packets_in;
  Counter packets_out;                       ///< sent, of handshakes too; several may share a datagram
  Counter bytes_in;                          ///< UDP payload
  Counter bytes_out;                         ///< UDP payload
  std::array<Counter, kMessageDrops> drops;  ///< indexed by MessageDrop

  Counter fragments_bundled;           ///< sent in the packet of another
  Counter fragments_dropped;           ///< in `drops`, though their packet counts already
  Counter packets_behind;              ///< seen behind another in its datagram
  Counter fragments_repeated;          ///< sent again
  Counter fragments_duplicate;         ///< received again; their packets count as taken
  Counter packets_lost;                ///< found lost by acknowledgements
  Counter losses_spurious;             ///< of these, acknowledged after all
  Counter probes;                      ///< tail-loss probes
  Counter timeouts;                    ///< retransmission timeouts
  Counter path_probes;                 ///< padded packets that ask how long datagrams may be
  Counter black_holes;                 ///< times that a path did not carry any more what it had carried
  Counter path_challenges;             ///< asked whether a session's peer is at an address that it had not before
  Counter path_challenges_spared;      ///< not asked: too soon after another, or no room
  Counter path_changes_refused;        ///< not asked: the Authorizer does not let the peer be there
  Counter path_changes;                ///< sessions whose peer was found at another address or port
  Counter peers_doubted;               ///< times that a peer was asked because the network said that it is not there
  Counter unreachable_ignored;         ///< the same was said of no session, of what its peer has passed, or too soon
  Counter clock_jumps;                 ///< `now` stepped back, or further than max_clock_step
  Counter heads_too_small;             ///< times that the transport gave less room than Outgoing::head_capacity must be
  Counter sessions_opened;             ///< opened here: their handshakes are done
  Counter sessions_accepted;           ///< opened by peers, and told as `accepted`
  Counter messages_turned_away;        ///< of peers, refused because this end drains
  Counter messages_stalled;            ///< of peers, given up for nothing more of them came for message_timeout
  Counter over_per_address;            ///< in `drops` as over_quota: beyond SessionQuotas::per_address
  Counter over_per_prefix;             ///< the same, beyond per_prefix
  Counter over_half_open_per_address;  ///< the same, beyond half_open_per_address
  Counter over_half_open_per_prefix;   ///< the same, beyond half_open_per_prefix
  Counter over_bytes_per_address;      ///< in `drops` as over_share: beyond bytes_per_address, or the address's share
  Counter over_bytes_per_prefix;       ///< the same, beyond bytes_per_prefix, or the prefix's share
  Counter over_messages_per_address;   ///< in `drops` as over_share: beyond the address's share of max_messages
  Counter over_messages_per_prefix;    ///< the same, beyond the prefix's share
  Counter sessions_lost;               ///< ended for whatever reason, own ones that no peer answered too
  Counter requests;                    ///< submitted
  Counter messages_queued;             ///< own ones, requests too, that had to wait for others of their session
  Counter queue_full;                  ///< calls that were answered `no_slot`
  Counter responses;                   ///< received for them
  Counter requests_expired;  ///< of peers, refused for their deadline had come before the application took them
  Counter handled;           ///< requests and one-way messages of peers handed to the application

  /// Returns how many were dropped for this reason.
  [[nodiscard]] std::uint64_t dropped(MessageDrop reason) const {
    return drops[static_cast<std::size_t>(reason)].get();
  }
};

/// What is left of the memory that create() took.
struct EndpointFacts {
  std::uint32_t free_sessions = 0;       ///< of EndpointConfig::max_sessions
  std::uint32_t free_messages = 0;       ///< of EndpointConfig::max_messages
  std::uint32_t queued_messages = 0;     ///< own ones that wait for others of their session; max_queued bounds them
  std::uint32_t free_sent_packets = 0;   ///< of EndpointConfig::max_sent_packets
  std::uint64_t free_receive_bytes = 0;  ///< of EndpointConfig::receive_bytes
  bool operator==(const EndpointFacts&) const = default;
};

/// A session as it is now.
struct SessionFacts {
  PeerAddress peer;                     ///< where its packets go
  bool established = false;             ///< the handshake is done
  bool going_away = false;              ///< the peer takes no new messages: the session ends when all has
  KeyId key = 0;                        ///< established: id of the key that the peer has proven; 0 without protection
  Nanos smoothed_rtt;                   ///< average of the round trips
  Nanos min_rtt;                        ///< shortest round trip
  Nanos rto;                            ///< timeout of the next retransmission, as backed off
  double window_bytes = 0;              ///< that the congestion control allows in flight
  std::uint32_t in_flight_bytes = 0;    ///< sent and neither acknowledged nor found lost
  std::uint32_t in_flight_packets = 0;  ///< the same in packets
  std::uint32_t messages = 0;           ///< own ones under way
  std::uint32_t datagram_bytes = 0;     ///< of a full packet, as long as the path is known to carry
  std::uint32_t fragment_bytes = 0;     ///< payload of a full packet
};

}  // namespace warpline::message
