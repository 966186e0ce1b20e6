// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/datapath/forward_settings.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::datapath {

/// Where one queue pair's packets come from and go to, ports by their index on the command line.
struct PathRoute {
  std::uint16_t rx_port;  ///< received from
  std::uint16_t tx_port;  ///< sent by
  std::uint16_t queue;    ///< on both
};

/// What a worker's loop does.
enum class RoleKind : std::uint8_t {
  run_to_completion,  ///< receives and transmits its paths
  receive,            ///< receives one path
  engine,             ///< one host lane of a path's engine, or the thread that launches its kernels
  transmit,           ///< transmits one path
  far_side,           ///< generates and checks on the far side of a loopback
};

/// What one worker does.
struct Role {
  RoleKind kind;                     ///< what its loop does
  std::vector<std::uint16_t> paths;  ///< indices into ForwardLayout::paths; the queue for far_side
  std::uint16_t lane = 0;            ///< of an engine
};

/// Who does what in a `forward` run. `roles` and `requests` run in parallel.
struct ForwardLayout {
  ModelKind model;           ///< never automatic
  bool mixes_ports = false;  ///< what a path receives may leave by any port, not by its own alone
  /// One worker does both directions of a pair of ports, and answers by the queue of what it forwards.
  bool replies_share_queues = false;
  std::vector<PathRoute> paths;                  ///< one a queue pair of each port that receives
  std::vector<Role> roles;                       ///< one a worker
  std::vector<runtime::WorkerRequest> requests;  ///< the lcores that the roles need

  /// Returns the transmit queue of the port that a path receives from by which it answers for the port's addresses.
  [[nodiscard]] std::uint16_t reply_queue(const DatapathSettings& settings, const PathRoute& path) const;
  /// Transmit queues that each port needs: one for each of its pipelines, and as many for answers if the port has an
  /// address, and its packets leave elsewhere, unless replies_share_queues.
  [[nodiscard]] std::uint16_t tx_queues(const DatapathSettings& settings, std::uint16_t port) const;
};

/// Port 0 sends to port 1 and back, 2 to 3 and so on; a port without a partner sends out of itself. `nodes`: NUMA node
/// of each port. `cpus`: how many processors there are. Pure.
[[nodiscard]] ForwardLayout lay_out_forward(const DatapathSettings& settings, const std::vector<int>& nodes,
                                            std::size_t cpus);

}  // namespace warpline::datapath
