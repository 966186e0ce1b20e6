// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/kinds.h"
#include "warpline/base/time/clock.h"
#include "warpline/base/time/device_clock.h"
#include "warpline/base/units.h"
#include "warpline/workload/workload.h"

namespace warpline::workload {

/// The counter of whoever runs this: the host's time-stamp counter, or a device's clock of nanoseconds.
struct LocalTicks {
  [[nodiscard]] WARPLINE_HD std::uint64_t now() const {
#if defined(__CUDA_ARCH__)
    return device_nanos();
#else
    return ticks_now();
#endif
  }
};

/// Keeps its worker busy for so long with each frame, then forwards it: the same on every engine, so n workers do n
/// frames in that time. Rounds up to the next reading of the counter: some 10 ns on a host, up to 32 ns on a device.
template <typename TickSource = LocalTicks>
struct Spin {
  static constexpr WorkloadKind kKind = WorkloadKind::spin;
  static constexpr bool kStateless = true;
  static constexpr WorkloadTraits kTraits{
      .access = FrameAccess::nothing, .effect = FrameEffect::unchanged, .takes_time = true};

  /// Spends `time` on each packet.
  [[nodiscard]] static Spin taking(Nanos time) {
    if (time.value <= 0) return {};
    return {nanos_to_ticks(time), static_cast<std::uint64_t>(time.value)};
  }

  std::uint64_t host_ticks = 0;
  std::uint64_t device_nanos = 0;
  TickSource source{};

  WARPLINE_HD Verdict operator()(FrameRef /*frame*/) {
#if defined(__CUDA_ARCH__)
    const std::uint64_t ticks = device_nanos;
#else
    const std::uint64_t ticks = host_ticks;
#endif
    const std::uint64_t begin = source.now();
    while (source.now() - begin < ticks) {
    }
    return Verdict::forward;
  }
  void merge(const Spin& /*other*/) {}
};

}  // namespace warpline::workload
