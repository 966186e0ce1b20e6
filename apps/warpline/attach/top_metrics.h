// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "attach/top_table.h"

namespace warpline::attach {

/// A metric that `top` shows.
struct TopMetric {
  std::string_view name;
  std::string_view bytes;  ///< the metric that has the bytes of the same; empty: none
  RowKind kind;
  std::string_view what;  ///< the row's name, or what stands behind its label
  bool if_any = false;    ///< no row while it is 0
};

inline constexpr TopMetric kTopMetrics[] = {
    {"warpline_received_packets", "warpline_received_bytes", RowKind::run, "received"},
    {"warpline_transmitted_packets", "warpline_transmitted_bytes", RowKind::run, "transmitted"},
    {"warpline_delivered_packets", "warpline_delivered_bytes", RowKind::run, "delivered"},
    {"warpline_generated_packets", "warpline_generated_bytes", RowKind::run, "generated"},
    {"warpline_port_received_packets", "warpline_port_received_bytes", RowKind::port, "received"},
    {"warpline_port_transmitted_packets", "warpline_port_transmitted_bytes", RowKind::port, "transmitted"},
    {"warpline_port_missed_packets", "", RowKind::port, "missed", true},
    {"warpline_port_no_buffer_packets", "", RowKind::port, "no buffer", true},
    {"warpline_port_error_packets", "", RowKind::port, "errors", true},
    {"warpline_queue_received_packets", "", RowKind::queue, "received"},
    {"warpline_queue_transmitted_packets", "", RowKind::queue, "transmitted"},
    {"warpline_stage_packets", "", RowKind::engine, ""},
    {"warpline_message_sessions", "", RowKind::session, "opened"},
    {"warpline_message_lost_sessions", "", RowKind::session, "lost", true},
    {"warpline_message_served_requests", "", RowKind::session, "requests served"},
    {"warpline_message_ended_requests", "", RowKind::session, "requests", true},
    {"warpline_daemon_attached_clients", "", RowKind::session, "clients attached"},
    {"warpline_stream_opened_connections", "", RowKind::session, "connections opened"},
    {"warpline_stream_open_connections", "", RowKind::session, "connections open"},
    {"warpline_stream_payload_bytes", "", RowKind::session, "payload bytes"},
    {"warpline_dropped_packets", "", RowKind::drop, "", true},
    {"warpline_message_transport_dropped_packets", "", RowKind::drop, "", true},
};

}  // namespace warpline::attach
