// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

#include "warpline/base/clock.h"
#include "warpline/base/units.h"
#include "warpline/workload/checksum.h"
#include "warpline/workload/count.h"
#include "warpline/workload/frame_limits.h"
#include "warpline/workload/mac_swap.h"
#include "warpline/workload/none.h"
#include "warpline/workload/spin.h"
#include "warpline/workload/workload.h"

#include WARPLINE_USER_WORKLOAD  // defines UserWork

namespace warpline::workload {

static_assert(Workload<UserWork> && std::default_initializable<UserWork>);
static_assert(UserWork::kKind == WorkloadKind::user);

/// Calls `f` with the workload as a value of its own type, and returns what `f` returns. Set-up only: the loop that `f`
/// runs has the work inlined. `packet_time` is of spin; `mtu` is of the port that frames come from, what is longer
/// being a giant to all workloads but none. A FrameLimits around a Count has the tally: `work.work().tally()`.
template <typename F>
decltype(auto) with_workload(WorkloadKind kind, Nanos packet_time, std::uint16_t mtu, F&& f) {
  switch (kind) {
    case WorkloadKind::none:
      break;
    case WorkloadKind::mac_swap:
      return f(FrameLimits(MacSwap{}, mtu));
    case WorkloadKind::count:
      return f(FrameLimits(Count{}, mtu));
    case WorkloadKind::checksum:
      return f(FrameLimits(ChecksumVerify{}, mtu));
    case WorkloadKind::spin:
      if (packet_time.value <= 0) return f(FrameLimits(Spin<>{}, mtu));
      return f(FrameLimits(Spin<>{nanos_to_ticks(packet_time), static_cast<std::uint64_t>(packet_time.value)}, mtu));
    case WorkloadKind::user:
      return f(FrameLimits(UserWork{}, mtu));
  }
  return f(NoWork{});
}

}  // namespace warpline::workload
