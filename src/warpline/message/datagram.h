// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// No packet's header is longer: so much of a datagram lies in its head.
inline constexpr std::uint32_t kMaxHeadBytes = 256;
/// The least room that an Outgoing offers.
inline constexpr std::uint32_t kMinHeadCapacity = 384;
/// That it offers where messages have metadata, or the datagram's bytes if these are fewer.
inline constexpr std::uint32_t kMetadataHeadCapacity = 1280;

/// A UDP payload that arrived, checksum verified, in at most two pieces. Borrowed for the call of receive() alone,
/// which decrypts in place.
struct Datagram {
  std::uint8_t* head = nullptr;   ///< host memory; at least min(kMaxHeadBytes, all) bytes; with protection, all
  std::uint8_t* rest = nullptr;   ///< what follows the head: host or device memory
  std::uint32_t head_length = 0;  ///< bytes
  std::uint32_t rest_length = 0;  ///< bytes
  PeerAddress from;               ///< the sender's address and port
  Nanos arrived = kNever;         ///< when it did, by the clock of receive()'s `now`; kNever: then, as far as is known
  std::uint8_t ecn = 0;           ///< IP's two bits (RFC 3168): 3 is Congestion Experienced
  bool rest_device = false;       ///< `rest` is not readable by the CPU
};

/// What the network says of a datagram that was sent: nothing has the port that it was for (ICMP, RFC 792; ICMPv6, RFC
/// 4443, section 3.1). Anybody can say so. Borrowed for the call of unreachable() alone.
struct Unreachable {
  PeerAddress to;                         ///< where the datagram was sent
  std::span<const std::uint8_t> payload;  ///< of its UDP payload the first bytes, as many as were repeated
};

/// Session of an Outgoing that belongs to none, such as a handshake's answer.
inline constexpr std::uint32_t kNoSession = std::numeric_limits<std::uint32_t>::max();

/// A UDP payload to be sent: head, then `payload`. The transport sets the first group before transmit(), the endpoint
/// the second.
struct Outgoing {
  std::uint8_t* head = nullptr;     ///< host memory, such as an mbuf behind the room for UDP's header
  std::uint32_t head_capacity = 0;  ///< bytes at `head`, at least kMinHeadCapacity; with protection, datagram_bytes;
                                    ///< for metadata, kMetadataHeadCapacity. Where it is less, nothing of that is
                                    ///< written, and `heads_too_small` counts it
  std::uint32_t copy_up_to = 0;     ///< payload in host memory up to this is copied behind the header, where it fits

  std::uint32_t head_length = 0;          ///< bytes of the datagram at `head`
  std::uint32_t payload_length = 0;       ///< 0: all is in the head
  const std::uint8_t* payload = nullptr;  ///< application memory, to be gathered
  std::uint64_t token = 0;                ///< not 0: transmitted(token) once the payload is not read any more
  std::uint32_t session = kNoSession;     ///< index below max_sessions, for what the transport keeps of each; or none
  bool payload_device = false;            ///< `payload` is not readable by the CPU
  bool ecn_capable = false;               ///< send as ECT(0) (RFC 3168)
  PeerAddress to;                         ///< where it is to be sent

  /// Bytes of the whole UDP payload.
  [[nodiscard]] std::uint32_t length() const { return head_length + payload_length; }
};

}  // namespace warpline::message
