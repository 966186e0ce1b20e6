// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/kinds.h"
#include "warpline/workload/workload.h"

namespace warpline::workload {

/// Forwards every frame as it is, without a look at it.
struct NoWork {
  static constexpr WorkloadKind kKind = WorkloadKind::none;
  static constexpr bool kStateless = true;
  static constexpr WorkloadTraits kTraits{
      .access = FrameAccess::nothing, .effect = FrameEffect::unchanged, .any_length = true};

  WARPLINE_HD Verdict operator()(FrameRef /*frame*/) const { return Verdict::forward; }
  void merge(const NoWork& /*other*/) {}
};

}  // namespace warpline::workload
