// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/memory/port_pools.h"
#include "warpline/port/port_settings.h"
#include "warpline/traffic/traffic.h"

namespace warpline::ingest {

/// True if every port is a net_vnic with wire=static, which hands out buffers and never writes payload.
[[nodiscard]] bool on_static_wires(std::span<const port::PortSettings> ports);

/// Writes a frame of the plan into each buffer of the pools, stamped `ticks`: what a static wire then brings, again and
/// again, a PatternCheck without duplicates compares byte by byte. For buffers in host memory, before packets are
/// received. Returns how many were written.
std::uint64_t fill_with_frames(std::span<const memory::PortPools> pools, const traffic::TrafficPlan& plan,
                               std::uint64_t ticks);

}  // namespace warpline::ingest
