// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "warpline/base/result.h"
#include "warpline/stream_port/run/stream_run.h"

namespace warpline {

/// Returns the run of `stream receive` with this configuration. Errors: environment, if the system has no random bytes.
[[nodiscard]] inline Result<stream_port::StreamRunSettings> receiving_run(const config::Config& config) {
  const config::StreamConfig& stream = config.stream;
  WARPLINE_TRY(const stream::ReceiverSettings receiver, stream.receiver());
  return stream_port::StreamRunSettings{
      .runtime = config.runtime,
      .pool = config.pool,
      .receive = stream_port::ReceiveSettings{.port = config.ports.front(),
                                              .receiver = receiver,
                                              .queues = stream.pipelines,
                                              .vlan = stream.vlan,
                                              .lanes = {.engine = stream.engine,
                                                        .rings = stream.rings(),
                                                        .gpu = stream.gpu,
                                                        .populate = stream.populate,
                                                        .queues = stream.io == ProcessorKind::gpu}}};
}

}  // namespace warpline
