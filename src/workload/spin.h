// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/frame.h"
#include "base/host_device.h"
#include "base/kinds.h"

namespace warpline {

/// The host's time-stamp counter as a tick source: nanos_to_ticks() says how long a tick is.
struct HostTicks {
  [[nodiscard]] std::uint64_t now() const { return ticks_now(); }
};

/// Keeps its worker busy for `ticks` with each frame, then forwards it: the same on every engine, so n workers do n
/// frames in that time. Rounds up to the next reading of the counter, which itself takes some 10 ns.
template <typename TickSource = HostTicks>
struct Spin {
  static constexpr WorkloadKind kKind = WorkloadKind::spin;

  std::uint64_t ticks = 0;
  TickSource source{};

  WARPLINE_HD Verdict operator()(FrameRef /*frame*/) {
    const std::uint64_t begin = source.now();
    while (source.now() - begin < ticks) {
    }
    return Verdict::forward;
  }
  void merge(const Spin& /*other*/) {}
};

}  // namespace warpline
