// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "warpline/base/kinds.h"
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

#define WARPLINE_CHECK_FUNCTOR(enumerator, name, functor) \
  static_assert(Workload<functor> && std::default_initializable<functor> && functor::kKind == WorkloadKind::enumerator);
WARPLINE_WORKLOADS(WARPLINE_CHECK_FUNCTOR)
#undef WARPLINE_CHECK_FUNCTOR

/// What engines run: runts and giants are dropped before `Work`, unless that takes a frame of any length.
template <typename Work>
using LimitedWork = std::conditional_t<kTraitsOf<Work>.any_length, Work, FrameLimits<Work>>;

/// Makes what engines run of `Work`. Set-up only.
template <typename Work>
[[nodiscard]] LimitedWork<Work> make_work(Nanos packet_time, std::uint16_t mtu) {
  Work work{};
  if constexpr (kTraitsOf<Work>.takes_time) work = Work::taking(packet_time);
  if constexpr (kTraitsOf<Work>.any_length) {
    return work;
  } else {
    return {work, mtu};
  }
}

/// Calls `f` with the workload as a value of its own type, and returns what `f` returns. Set-up only: the loop that `f`
/// runs has the work inlined. `packet_time` is of those that take time; `mtu` is of the port that frames come from,
/// what is longer being a giant. A FrameLimits around a Count has the tally: `work.work().tally()`.
template <typename F>
decltype(auto) with_workload(WorkloadKind kind, Nanos packet_time, std::uint16_t mtu, F&& f) {
  switch (kind) {
#define WARPLINE_CASE(enumerator, name, functor) \
  case WorkloadKind::enumerator:                 \
    return f(make_work<functor>(packet_time, mtu));
    WARPLINE_WORKLOADS(WARPLINE_CASE)
#undef WARPLINE_CASE
  }
  return f(NoWork{});
}

/// What the workload says of itself, its limits included.
[[nodiscard]] constexpr WorkloadTraits traits_of(WorkloadKind kind) {
  switch (kind) {
#define WARPLINE_CASE(enumerator, name, functor) \
  case WorkloadKind::enumerator:                 \
    return kTraitsOf<LimitedWork<functor>>;
    WARPLINE_WORKLOADS(WARPLINE_CASE)
#undef WARPLINE_CASE
  }
  return {};
}

}  // namespace warpline::workload
