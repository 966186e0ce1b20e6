// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "base/frame.h"
#include "base/host_device.h"

namespace warpline {

/// Copies the second piece of each frame to where the first is; both are of the same length. On a GPU a warp does it.
struct CopyPieces {
  static constexpr bool kStateless = true;

  WARPLINE_HD Verdict operator()(FrameRef pieces) const {
    std::memcpy(pieces.segments[0].data, pieces.segments[1].data, pieces.segments[0].length);
    return Verdict::forward;
  }
};

}  // namespace warpline
