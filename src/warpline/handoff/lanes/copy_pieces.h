// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"

namespace warpline::handoff {

/// Threads of a CTA that copies. A multiprocessor holds two such CTAs; of 512 threads, by their registers, only one.
inline constexpr std::uint16_t kCopyThreads = 448;

/// Copies the second piece of each frame to where the first is; both are of the same length. On a GPU a warp does it.
struct CopyPieces {
  static constexpr bool kStateless = true;

  WARPLINE_HD Verdict operator()(FrameRef pieces) const {
    std::memcpy(pieces.segments[0].data, pieces.segments[1].data, pieces.segments[0].length);
    return Verdict::forward;
  }
};

}  // namespace warpline::handoff
