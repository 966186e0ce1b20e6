// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/message/datagram.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/receive/reassembly.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/handshake.h"
#include "warpline/message/internal/session/path_validation.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/transfer/transfers.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

class FetchAhead;

/// From datagrams to packets of sessions, and from these to acknowledgements and fragments. What a packet says counts
/// only once it is known to be of its session, and new; whatever is not taken is dropped with a reason.
class Receiver {
 public:
  Receiver(EndpointCore& core, Transfers& transfers, Recovery& recovery, SessionLife& life, Handshake& handshake,
           PathValidation& validation, Reassembly& reassembly)
      : core_(core),
        transfers_(transfers),
        recovery_(recovery),
        life_(life),
        handshake_(handshake),
        validation_(validation),
        reassembly_(reassembly) {}

  void receive(std::span<const Datagram> datagrams);

 private:
  void receive_one(const Datagram& datagram, FetchAhead& ahead);
  [[nodiscard]] bool parse_or_drop(const Datagram& datagram, packet::MessageHeader& header);
  void receive_packets(const Datagram& datagram, FetchAhead& ahead);
  void receive_packet(const Datagram& datagram, const packet::MessageHeader& header);
  [[nodiscard]] Session* session_of(const packet::MessageHeader& header, const Datagram& datagram);
  [[nodiscard]] Session* session_elsewhere(Session& session, const packet::MessageHeader& header,
                                           const Datagram& datagram);
  [[nodiscard]] bool authentic(Session& session, const packet::MessageHeader& header, const Datagram& datagram);
  void take_packet(Session& session, const packet::MessageHeader& header, const Datagram& datagram);
  [[nodiscard]] std::uint32_t take_bundle(Session& session, const packet::MessageHeader& header,
                                          const Datagram& datagram);
  /// False if the packet, or this fragment of a bundle, must not count as received.
  [[nodiscard]] bool take_fragment(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const packet::MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool take_with_head(Session& session, const Datagram& datagram, std::uint32_t at,
                                    packet::MessageFragment fragment, std::uint32_t length);
  void take_busy(Session& session, const packet::MessageFragment& fragment);
  void schedule_ack(Session& session, const packet::MessageHeader& header, bool in_order);

  EndpointCore& core_;
  Transfers& transfers_;
  Recovery& recovery_;
  SessionLife& life_;
  Handshake& handshake_;
  PathValidation& validation_;
  Reassembly& reassembly_;
  bool newest_elsewhere_ = false;  ///< the packet is from another address than its session's, and newer than all others
};

}  // namespace warpline::message
