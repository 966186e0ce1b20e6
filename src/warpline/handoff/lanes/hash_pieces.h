// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "warpline/base/block_hash.h"
#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"

namespace warpline::handoff {

/// Writes the block_hash() of each frame's second piece to where the first is, eight bytes, aligned.
struct HashPieces {
  static constexpr bool kStateless = true;

  WARPLINE_HD Verdict operator()(FrameRef pieces) const {
    const std::uint64_t hash = block_hash(pieces.segments[1].data, pieces.segments[1].length);
    *reinterpret_cast<std::uint64_t*>(pieces.segments[0].data) = hash;
    return Verdict::forward;
  }
};

}  // namespace warpline::handoff
