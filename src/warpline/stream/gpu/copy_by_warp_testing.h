// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpline::stream::testing {

/// Returns the address of the __global__ function (const CopyPiece*, std::uint32_t) that copies each piece by one warp.
const void* copy_pieces_kernel();

}  // namespace warpline::stream::testing
