// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/statistics/run_totals.h"
#include "warpline/port/port_queue.h"
#include "warpline/traffic/generator.h"

namespace warpline::traffic {

/// Sends the next `packets` frames of `generator` out of `to`, or as many as the queue takes without being waited for.
/// Returns what was sent; the rest is freed. Before the queue has another owner.
[[nodiscard]] Tally send_frames(Generator& generator, port::PortQueue to, std::uint32_t packets);

}  // namespace warpline::traffic
