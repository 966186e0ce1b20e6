// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/memory/port_pools.h"
#include "warpline/port/port_settings.h"
#include "warpline/traffic/traffic.h"

namespace warpline::ingest {

/// Returns true if every port is a net_vnic with wire=static, which hands out buffers and never writes payload.
[[nodiscard]] bool on_static_wires(std::span<const port::PortSettings> ports);

/// Writes a frame of the plan into each buffer of the pools, stamped `ticks`. A static wire then delivers these again
/// and again, and a PatternCheck without duplicates compares them byte by byte. The buffers lie in host memory, and no
/// packet was received yet. Returns how many were written.
std::uint64_t fill_with_frames(std::span<const memory::PortPools> pools, const traffic::TrafficPlan& plan,
                               std::uint64_t ticks);

}  // namespace warpline::ingest
