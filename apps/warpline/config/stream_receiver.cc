// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/config.h"
#include "warpline/base/secrets/draw_secret.h"

namespace warpline::config {

Result<stream::ReceiverSettings> StreamConfig::receiver() const {
  stream::ReceiverSettings settings;
  settings.ports = listen;
  settings.connections = connections;
  settings.half_open = std::max<std::uint32_t>(connections / 2, 1);
  settings.ring_bytes = ring;
  settings.populate_rings = populate;
  settings.keepalive_idle = keepalive;
  settings.lane_acknowledges = ack == ProcessorKind::gpu;
  settings.discards = !processing;
  settings.lane_patience = watchdog;
  if (keepalive.value != 0) settings.keepalive_interval = std::min(keepalive, settings.keepalive_interval);
  WARPLINE_CHECK(draw_secret(settings.secret));
  return settings;
}

}  // namespace warpline::config
