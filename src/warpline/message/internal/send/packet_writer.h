// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/message/datagram.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// A packet that is being written: its first fragment, and the small messages that travel along (bundling, as SCTP has
/// it: RFC 9260, section 6.10).
struct Draft {
  Outgoing& out;
  std::uint64_t number = 0;
  SentPacket* packet = nullptr;     ///< the first fragment's
  std::uint32_t header_length = 0;  ///< all before the first payload; 0: there is no fragment yet
  std::uint32_t limit = 0;          ///< bytes that the head may have; 0: nothing joins it
  bool prompt = false;
  [[nodiscard]] bool begun() const { return header_length != 0; }
};

/// The bytes of established sessions' packets. Whoever has one written has reserved its number. An acknowledgement that
/// is owed travels with whatever is written.
class PacketWriter {
 public:
  PacketWriter(EndpointCore& core, Recovery& recovery) : core_(core), recovery_(recovery) {}

  /// Bytes that the fragment is in a packet, behind its header.
  [[nodiscard]] static std::uint32_t payload_of(const Message& message, std::uint32_t fragment) {
    if (fragment == kCancelFragment) return 0;
    if (message.fragments == 1) return message.out_length;
    const std::uint32_t head = message.out_head != 0 ? packet::MessageFragment::kHeadLength : 0;
    return std::min<std::uint32_t>(message.fragment_bytes, message.out_length - fragment * message.fragment_bytes) +
           head;
  }
  /// What a fragment with this payload adds to what is in flight.
  [[nodiscard]] std::uint32_t bytes_of(std::uint32_t payload, const Draft& draft) const {
    return draft.begun() ? packet::MessageFragment::kLength + payload : packet_bytes(payload);
  }
  /// Whether the fragment may be the draft's first, or join what is in it.
  [[nodiscard]] bool fits(const Session& session, const Message& message, std::uint32_t fragment,
                          const Draft& draft) const {
    if (message.out_head > packet::MessageFragment::kTimeLeft && !has_room_for_head(session, draft)) [[unlikely]]
      return false;
    if (!draft.begun()) return true;
    return is_small(message, fragment) &&
           draft.out.head_length + packet::MessageFragment::kLength + message.out_length <= draft.limit;
  }
  /// Into a packet of its own, or behind the fragments of the draft. A grant is a packet, and no draft begins.
  void write_fragment(Session& session, std::uint32_t index, std::uint32_t fragment, bool prompt, Draft& draft);
  /// Once all fragments are in it.
  void finish(Session& session, Draft& draft);

  /// Without a fragment, and without the wish to be acknowledged.
  void write_bare(Session& session, Outgoing& out, std::uint8_t flags);
  void write_ping(Session& session, Outgoing& out);
  /// A ping of so many bytes, and nothing else: its loss is no sign of congestion (RFC 8899, section 4.1).
  void write_path_probe(Session& session, std::uint32_t bytes, Outgoing& out);
  /// Wants no acknowledgement.
  void write_path_check(Session& session, const packet::MessagePathCheck& check, Outgoing& out);
  void write_busy(Session& session, Outgoing& out);
  void write_go_away(Session& session, Outgoing& out);
  void write_grant(Session& session, std::uint32_t index, Outgoing& out);

 private:
  /// A message whose bytes the call has copied, whole.
  [[nodiscard]] static bool is_small(const Message& message, std::uint32_t fragment) {
    return fragment == 0 && message.fragments == 1 && (message.out_length == 0 || message.out == message.bytes.data());
  }
  [[nodiscard]] bool has_room_for_head(const Session& session, const Draft& draft) const;
  [[nodiscard]] std::uint32_t packet_bytes(std::uint32_t payload) const {
    return packet::MessageHeader::kLength + packet::MessageAck::kLength + packet::MessageFragment::kLength + payload +
           (core_.context.is_protected() ? packet::kMessageTagLength : 0);
  }
  std::uint32_t write_head(const Message& message, std::uint32_t offset, std::uint32_t payload, std::uint8_t* to) const;
  SentPacket& write_elicitor(Session& session, std::uint8_t flags, const packet::MessageFragment* fragment,
                             Outgoing& out);
  [[gnu::noinline]] void mark_large(Session& session, const Draft& draft);
  std::uint8_t* write_header(Session& session, std::uint64_t number, std::uint8_t flags, std::uint32_t payload,
                             std::uint8_t* head);
  void seal(Session& session, std::uint64_t number, std::uint8_t* head, std::uint32_t header, std::uint32_t payload);

  EndpointCore& core_;
  Recovery& recovery_;
};

}  // namespace warpline::message
