// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_metrics.h"

#include <string>

namespace warpline::service {
namespace {

using metrics::Family;

/// Adds frames; those that the device dropped are its port's. Returns the drops.
Family& add_stream_frames(metrics::Snapshot& snapshot, const StreamFrameTotals& frames) {
  snapshot.counter("warpline_received_packets", "packets", "Frames received").with(frames.received);
  snapshot.counter("warpline_received_bytes", "bytes", "Bytes of these").with(frames.received_bytes);
  snapshot.counter("warpline_transmitted_packets", "packets", "Frames sent").with(frames.sent);
  snapshot.counter("warpline_transmitted_bytes", "bytes", "Bytes of these").with(frames.sent_bytes);
  Family& drops = snapshot.counter("warpline_dropped_packets", "packets", "Frames dropped, by reason");
  for (std::size_t i = 0; i < stream::kDispositions; ++i) {
    const auto disposition = static_cast<stream::Disposition>(i);
    if (!stream::is_drop(disposition)) continue;
    drops.with(frames.dispositions[i], {{"reason", std::string(stream::name(disposition))}});
  }
  snapshot.counter("warpline_stream_no_buffer_packets", "packets", "Frames not sent because no buffer was free")
      .with(frames.no_mbuf);
  return drops.with(frames.not_answered, {{"reason", "not_answered"}})
      .with(frames.too_many_pieces, {{"reason", "too_many_pieces"}})
      .with(frames.other_vlan, {{"reason", "other_vlan"}});
}

Family& ended_connections(metrics::Snapshot& snapshot) {
  return snapshot.counter("warpline_stream_ended_connections", "connections", "Connections that ended, by how");
}

Family& payload(metrics::Snapshot& snapshot) {
  return snapshot.counter("warpline_stream_payload_bytes", "bytes", "Payload received, or sent and acknowledged");
}

Family& opened_connections(metrics::Snapshot& snapshot) {
  return snapshot.counter("warpline_stream_opened_connections", "connections", "Connections that were opened");
}

}  // namespace

void add(metrics::Snapshot& snapshot, const StreamTotals& totals) {
  add_stream_frames(snapshot, totals);
  payload(snapshot).with(totals.bytes);
  opened_connections(snapshot).with(totals.opened);
  ended_connections(snapshot)
      .with(totals.finished, {{"how", "finished"}})
      .with(totals.reset, {{"how", "reset"}})
      .with(totals.timed_out, {{"how", "timed_out"}})
      .with(totals.aborted, {{"how", "aborted"}});
  snapshot.gauge("warpline_stream_open_connections", "connections", "Connections that are open").with(totals.open());
  snapshot.counter("warpline_stream_acknowledgements", "", "Acknowledgements sent").with(totals.acknowledgements);
  snapshot.counter("warpline_stream_cookies", "", "Handshakes that were answered by a SYN cookie").with(totals.cookies);
}

void add(metrics::Snapshot& snapshot, const SendTotals& totals) {
  add_stream_frames(snapshot, totals).with(totals.not_taken_over, {{"reason", "not_taken_over"}});
  payload(snapshot).with(totals.bytes);
  opened_connections(snapshot).with(totals.opened);
  ended_connections(snapshot)
      .with(totals.finished, {{"how", "finished"}})
      .with(totals.refused, {{"how", "refused"}})
      .with(totals.reset, {{"how", "reset"}})
      .with(totals.timed_out, {{"how", "timed_out"}})
      .with(totals.aborted, {{"how", "aborted"}});
  snapshot.counter("warpline_stream_segments", "", "Segments with payload sent, by whether for the first time")
      .with(totals.segments, {{"sent", "first"}})
      .with(totals.retransmitted, {{"sent", "again"}});
  snapshot.counter("warpline_stream_timeouts", "", "Retransmission timeouts").with(totals.timeouts);
}

}  // namespace warpline::service
