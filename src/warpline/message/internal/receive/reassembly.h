// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/message/datagram.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/transfer/transfers.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// Messages out of their fragments: where each byte goes, when a message is whole, and on ordered sessions when it is
/// its turn. A slot of the peer's holds its newest message; an older one is over. A message for which there is no
/// memory is not taken at all, and the peer is told so.
class Reassembly {
 public:
  Reassembly(EndpointCore& core, Transfers& transfers) : core_(core), transfers_(transfers) {}

  /// Takes a fragment of a peer's request or message: cut where the sender must have cut it, its `length` bytes begin
  /// at byte `at` of the datagram. Returns false if the packet, or this fragment of a bundle, must not count as
  /// received. take_response() does the same with a fragment of an answer to a request of this end.
  [[nodiscard]] bool take_incoming(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const packet::MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool take_response(Session& session, const Datagram& datagram, std::uint32_t at,
                                   const packet::MessageFragment& fragment, std::uint32_t length);

  void take_cancel(Session& session, const packet::MessageFragment& fragment);
  void take_refusal(Session& session, const packet::MessageFragment& fragment);

  /// Gives up the session's messages of which nothing more has come for EndpointConfig::message_timeout, unless it was
  /// this end that held the peer back. False if one of an ordered session waits as long for one before it.
  [[nodiscard]] bool expire(Session& session);

 private:
  enum class Placed : std::uint8_t { no, yes, complete };
  [[nodiscard]] Placed place(Message& message, Session& session, const Datagram& datagram, std::uint32_t at,
                             const packet::MessageFragment& fragment, std::uint32_t length) {
    if (message.fragment_bytes != 0) return place_part(message, session, datagram, at, fragment, length);
    return put(message, datagram, at, 0, length) ? Placed::complete : Placed::no;
  }
  [[nodiscard]] Placed place_part(Message& message, Session& session, const Datagram& datagram, std::uint32_t at,
                                  const packet::MessageFragment& fragment, std::uint32_t length);
  [[nodiscard]] bool put(Message& message, const Datagram& datagram, std::uint32_t at, std::uint32_t offset,
                         std::uint32_t length) {
    if (message.in_head != 0) [[unlikely]]
      return put_with_head(message, datagram, at, offset, length);
    if (message.in_device || at + length > datagram.head_length)
      return copy_in(datagram, at, length, message.in + offset, message.in_device);
    if (length != 0) std::memcpy(message.in + offset, datagram.head + at, length);
    return true;
  }
  [[nodiscard]] bool put_with_head(Message& message, const Datagram& datagram, std::uint32_t at, std::uint32_t offset,
                                   std::uint32_t length);
  [[nodiscard]] bool take_head(Message& message, const Datagram& datagram, std::uint32_t at, std::uint32_t offset,
                               std::uint32_t length);
  [[nodiscard]] bool copy_in(const Datagram& datagram, std::uint32_t at, std::uint32_t length, std::uint8_t* to,
                             bool device);
  [[nodiscard]] bool may_take(const Session& session, const packet::MessageFragment& fragment, bool waits);
  void drop_over(PeerGroups::Share share);
  void drop_over_places(PeerGroups::Share share);
  [[nodiscard]] bool give_place(Session& session, Message& message, const packet::MessageFragment& fragment);
  [[nodiscard]] bool follow_cut(Session& session, Message& message, const packet::MessageFragment& fragment) {
    return fragment.fragment_bytes == message.fragment_bytes || begin_smaller(session, message, fragment);
  }
  [[nodiscard]] bool begin_smaller(Session& session, Message& message, const packet::MessageFragment& fragment);
  void tell_busy(Session& session, const packet::MessageFragment& fragment, std::uint16_t refusal = 0);
  [[nodiscard]] bool turn_away(Session& session, const packet::MessageFragment& fragment, RefusalCode code,
                               MessageDrop reason);
  [[nodiscard]] bool refuse(Session& session, const packet::MessageFragment& fragment, RefusalCode code);
  void supersede(Session& session, std::uint32_t slot);
  void whole(Session& session, std::uint32_t index);
  void hold_back(Session& session, std::uint32_t index);
  void skip_order(Session& session, std::uint16_t order);
  void deliver_in_order(Session& session);
  void expect_more(Session& session, Message& message);

  EndpointCore& core_;
  Transfers& transfers_;
};

}  // namespace warpline::message
