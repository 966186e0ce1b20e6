// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "warpline/base/units.h"
#include "warpline/message/cc_config.h"
#include "warpline/message/types.h"

namespace warpline::message {

class PacketProtection;

/// What an endpoint makes cookies, tokens and nonces of.
using EndpointSecret = std::array<std::uint8_t, 16>;

/// How what is lost is found and sent again.
enum class Reliability : std::uint8_t {
  selective,  ///< SACK, RACK, tail-loss probe, adaptive timeout
  go_back_n,  ///< for comparison: in order or dropped, fixed timeout, `credits` packets in flight
};

/// Copies received bytes to where the CPU cannot write, such as GPU memory. Called inside of receive(); what it starts
/// must have arrived before the next poll(). Null: there is no such memory.
struct Placer {
  void* context = nullptr;  ///< handed to `copy`; the application's
  /// Copies `length` bytes `from` where they were received `to` where they belong.
  void (*copy)(void* context, std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) = nullptr;
};

/// Where requests and messages of peers longer than kInlineBytes go, and responses so, instead of the endpoint's own
/// receive memory. take() may answer with a null buffer: the first packet is then dropped, and comes again later.
/// give() gets back each buffer taken, once.
struct BufferSource {
  void* context = nullptr;  ///< handed to both; the application's
  /// Gives a buffer for a message, request or response of `length` bytes that comes with `code`, or a null one.
  MutableBuffer (*take)(void* context, SessionId session, std::uint16_t code, std::uint32_t length) = nullptr;
  void (*give)(void* context, MutableBuffer buffer) = nullptr;  ///< takes such a buffer back
};

/// Says who may open a session here. Called inside of receive() for a hello that has proven its address and, with
/// protection, its key, before anything is kept of it: perhaps several times for one session, and for some that never
/// come about. Null: all may.
struct Authorizer {
  void* context = nullptr;  ///< handed to `allows`; the application's
  /// Returns whether `peer` may. `key`: id of the key that it has proven; 0 without protection. False: it hears
  /// `not_accepted`.
  bool (*allows)(void* context, const PeerAddress& peer, KeyId key) = nullptr;
};

/// What peers at one address may have of an endpoint, and those of one prefix: an IPv4 /24, an IPv6 /64. Half-open is a
/// session whose opener has not yet shown that it heard the answer. Each has a counter of its name,
/// EndpointCounters::over_per_address and so on.
struct SessionQuotas {
  std::uint32_t per_address = 0;            ///< 0: as many as there are
  std::uint32_t per_prefix = 0;             ///< 0: as many as there are
  std::uint32_t half_open_per_address = 0;  ///< 0: a quarter of max_sessions, 16 at least
  std::uint32_t half_open_per_prefix = 0;   ///< 0: half of max_sessions, 16 at least
  /// Bytes of receive memory for messages that are arriving, beside what EndpointConfig::receive_bytes says of shares;
  /// who has none of it may have one message, however long. 0: no more than that.
  std::uint64_t bytes_per_address = 0;
  std::uint64_t bytes_per_prefix = 0;  ///< the same of a prefix
  bool operator==(const SessionQuotas&) const = default;
};

/// What an endpoint is made of. All memory is taken by create().
struct EndpointConfig {
  /// None: create() draws one from the kernel, as it should be. For runs that are to be the same each time it can be
  /// given; all zeros are refused.
  std::optional<EndpointSecret> secret{};
  std::uint8_t endpoint = 0;  ///< first byte of the session ids on the wire, for steering among threads
  /// How many endpoints share this one's address, itself too, numbered from 0; 0: it is alone, whatever its number. A
  /// packet for a session of another one has lost its way: it is dropped (`misdirected`), and its sender not told that
  /// there is no such session.
  std::uint16_t endpoints = 0;
  bool accept = true;       ///< sessions that peers open
  Authorizer authorizer{};  ///< of those

  std::uint32_t max_sessions = 1024;         ///< memory for so many sessions, own and peers'
  SessionQuotas quotas{};                    ///< of those that peers open
  std::uint32_t stranger_packets = 100'000;  ///< a second, hellos and others outside of sessions, that are looked at
  /// Messages in flight at the same time, of all sessions, both directions. A quarter is kept for the first ones of
  /// each session. Of the others one address has at most 8 times as many as are free, its prefix 16 times.
  std::uint32_t max_messages = 1 << 14;
  /// Own requests and messages that wait because 64 of their session are under way, of all sessions: at most half of
  /// max_messages. Beyond it the call answers `no_slot`. 0: none waits.
  std::uint32_t max_queued = 4096;
  /// Packets not yet acknowledged that all sessions share, in blocks of 32. Each session has one block of its own
  /// before these, so that peers that acknowledge nothing stop no other session.
  std::uint32_t max_sent_packets = 1 << 16;
  /// Bytes of memory for what peers send, and for SendOptions::copy. Of what is free the messages that are arriving
  /// from one address take half at most, those from its /24 (of IPv6 its /64) all, unless nothing else is arriving. All
  /// messages of an address, until they are over, take at most 8 times what is free, those of its prefix 16 times.
  /// Beside it there is room for one longest response: with RequestOptions::response_in_endpoint one that finds none
  /// here goes there, so that ends that ask each other do not wait for each other's memory for ever.
  std::uint64_t receive_bytes = 64U << 20;
  /// Of a peer, without metadata. A longer one is refused, as is one that `receive_bytes`, rounded down to a power of
  /// two, cannot hold.
  std::uint32_t max_message_bytes = 16 << 20;
  std::uint32_t receive_window = 1 << 20;  ///< bytes a session may hold that the application has not taken

  /// Bytes of long messages and responses that all peers together may have on the way here, beyond each one's first
  /// packet: this end grants them, in turns. 0: no grants, each sender goes as fast as its congestion control lets it.
  std::uint32_t grants = 0;

  /// Requests that open streams, and what belongs to them, are taken: the events `stream_request` and `stream_piece`.
  /// rpc::CallStreams is what handles them. False: they are refused (RefusalCode::no_streams).
  bool streams = false;

  /// Small messages of peers may come several in a packet: not if Datagram::rest is device memory, whose headers the
  /// CPU could not read.
  bool bundles = true;

  std::uint32_t datagram_bytes = 1472;  ///< the most UDP payload of one packet, 256 to 65507; both ends use the smaller
  /// UDP payload that every path carries, 256 at least. Packets to an address are no longer until a probe of up to
  /// datagram_bytes has arrived there (RFC 8899). datagram_bytes or more: links are known, and nothing is probed.
  std::uint32_t base_bytes = 1200;
  /// Sessions with one address share what is known of the path: a new one begins with the round trip that others have
  /// measured, and those that begin to send beside others with a share of the window (RFC 9040). False: for comparison,
  /// each begins by itself. Of go_back_n each does.
  bool shares_paths = true;
  Nanos mtu_raise_time{600'000'000'000};             ///< a length that did not pass is tried again after so long
  Reliability reliability = Reliability::selective;  ///< of sessions opened here
  std::uint32_t credits = 32;                        ///< go_back_n: packets in flight
  CcConfig cc{};                                     ///< its mtu is set from datagram_bytes

  Nanos initial_rto{5'000'000};  ///< retransmission timeout until the first round trip was measured
  Nanos min_rto{1'000'000};      ///< least retransmission timeout
  /// Greatest retransmission timeout, backed off; less if 16 tries take longer than peer_timeout or connect_timeout.
  Nanos max_rto{1'000'000'000};
  Nanos fixed_rto{5'000'000};     ///< go_back_n
  Nanos max_ack_delay{25'000};    ///< an acknowledgement waits at most so long for a packet to travel with
  std::uint32_t ack_packets = 8;  ///< packets that are acknowledged without waiting

  /// Silence while something is awaited after which the peer is lost. Time in which the endpoint itself had no
  /// processor does not count.
  Nanos peer_timeout{15'000'000'000};
  /// A message of a peer that began to arrive is given up when nothing more of it came for so long.
  Nanos message_timeout{15'000'000'000};
  Nanos keepalive{5'000'000'000};        ///< between signs of life of an idle session
  Nanos connect_timeout{1'000'000'000};  ///< a handshake that is not answered for so long is given up
  Nanos max_clock_step{60'000'000'000};  ///< a longer step of the clock is a jump: counted, and cut to this

  Placer placer{};                         ///< needed where messages are received into device memory
  BufferSource buffers{};                  ///< null functions: the endpoint's own memory is used
  PacketProtection* protection = nullptr;  ///< null: packets are not encrypted. Of this endpoint alone; outlives it
};

/// How a session is opened.
struct SessionOptions {
  std::uint64_t context = 0;  ///< comes back in the session's own events, `connected` and `lost`
  bool ordered = false;       ///< requests and messages are handed out in the order of their sending, both ways
};

}  // namespace warpline::message
