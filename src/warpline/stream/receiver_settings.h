// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/units.h"

namespace warpline::stream {

class KnownConnections;

/// How a StreamReceiver of TCP streams behaves.
struct ReceiverSettings {
  MacAddress mac{};                    ///< the station's own
  IpAddress address{};                 ///< the address that it listens on
  std::vector<std::uint16_t> ports{};  ///< the ports that it listens on, at least one
  std::uint32_t connections = 64;      ///< connections at once, opening and closing ones among them: 1 to 1,048,576
  std::uint32_t half_open = 32;        ///< of these, how many may be opening; beyond that SYN cookies stand in for them
  std::uint64_t ring_bytes = 4 << 20;  ///< of each connection: a power of two from 64 KiB to 1 GiB; its largest window
  bool populate_rings = false;         ///< take the memory of all rings at once, not as they are first written
  bool discards = false;               ///< bytes are checked, put in order and acknowledged, but kept nowhere
  bool consumers = false;              ///< bytes are read by StreamReaders, beside the receiver's thread: with a lane
  std::uint16_t mtu = 1500;            ///< of the port, which segments fill: at least 576 over IPv4, 1,280 over IPv6
  std::array<std::uint8_t, 16> secret{};  ///< random, and known to nobody else: for sequence numbers and cookies

  Nanos delayed_acknowledgement{
      40'000'000};  ///< how long an acknowledgement may wait: less than 500 ms (RFC 9293, 3.8.6.3)
  Nanos first_retransmission{1'000'000'000};  ///< of a SYN or FIN of ours; doubles each time (RFC 6298)
  std::uint32_t retransmissions = 7;          ///< of these before a connection is given up, up to 255: over 3 minutes
  Nanos keepalive_idle{};                     ///< silence after which the peer is asked for a sign of life; 0: never
  Nanos keepalive_interval{75'000'000'000};   ///< between such questions
  std::uint32_t keepalive_probes = 9;         ///< of them before the peer counts as gone, up to 255
  std::uint32_t resets_per_second = 1000;     ///< answers to segments of connections that are not known
  Nanos lane_patience{5'000'000'000};         ///< a lane that takes none of the bursts that wait for so long hangs
  std::shared_ptr<KnownConnections>
      known{};  ///< shared by the receivers behind this address, with one `secret`; none: it is alone
  bool lane_acknowledges = false;  ///< its lane writes the acknowledgements of what it takes, not the receiver
};

}  // namespace warpline::stream
