// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/message_metrics.h"

namespace warpline::service {

using metrics::Family;

void add(metrics::Snapshot& snapshot, const MessageTotals& totals) {
  snapshot.counter("warpline_message_submitted_requests", "requests", "Requests that were made").with(totals.submitted);
  Family& ended = snapshot.counter("warpline_message_ended_requests", "requests", "Of these, by how they ended");
  for (std::size_t i = 0; i < totals.completed.size(); ++i) {
    ended.with(totals.completed[i], {{"status", std::string(message::name(static_cast<message::MessageStatus>(i)))}});
  }
  snapshot.counter("warpline_message_served_requests", "requests", "Requests that were answered").with(totals.served);
  snapshot.counter("warpline_message_refused_requests", "requests", "Requests that nobody serves")
      .with(totals.not_served);
  snapshot.counter("warpline_message_sent_bytes", "bytes", "Payload of requests answered and responses given")
      .with(totals.bytes_out);
  snapshot.counter("warpline_message_received_bytes", "bytes", "Payload of responses and of requests served")
      .with(totals.bytes_in);
  snapshot.counter("warpline_message_sessions", "", "Sessions that were opened, by who asked")
      .with(totals.connected, {{"by", "this"}})
      .with(totals.accepted, {{"by", "peer"}});
  Family& lost = snapshot.counter("warpline_message_lost_sessions", "sessions", "Sessions that were lost, by reason");
  for (std::size_t i = 1; i < totals.lost.size(); ++i) {
    lost.with(totals.lost[i], {{"reason", std::string(message::name(static_cast<message::LossReason>(i)))}});
  }
}

void add(metrics::Snapshot& snapshot, const PacketTotals& packets) {
  snapshot.counter("warpline_received_packets", "packets", "Packets received").with(packets.in);
  snapshot.counter("warpline_received_bytes", "bytes", "Bytes of these").with(packets.bytes_in);
  snapshot.counter("warpline_transmitted_packets", "packets", "Packets sent").with(packets.out);
  snapshot.counter("warpline_transmitted_bytes", "bytes", "Bytes of these").with(packets.bytes_out);
  Family& drops = snapshot.counter("warpline_dropped_packets", "packets", "Packets dropped, by reason");
  for (std::size_t i = 0; i < packets.drops.size(); ++i) {
    drops.with(packets.drops[i], {{"reason", std::string(message::name(static_cast<message::MessageDrop>(i)))}});
  }
  Family& below = snapshot.counter("warpline_message_transport_dropped_packets", "packets",
                                   "Packets dropped below the protocol, by reason");
  for (const auto& [reason, count] : packets.transport) below.with(count, {{"reason", reason}});
  Family& events = snapshot.counter("warpline_message_events", "", "What the protocol met with, by kind");
  for (const auto& [kind, count] : packets.protocol) events.with(count, {{"kind", kind}});
}

}  // namespace warpline::service
