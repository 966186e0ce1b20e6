// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/flow/batch_assembler.h"
#include "warpline/flow/frame_core.h"

namespace warpline::flow {

/// `kFrameThreads` is the number of threads of the CTA that assembles batches.
inline constexpr unsigned kFrameThreads = 512;

/// Returns the address of the __global__ function (AssemblerView, PacketBatch, WhenFull, std::uint32_t* decided), for
/// one CTA of kFrameThreads: it places one batch. Batches of one assembler come one after the other, as a stream has
/// them. `decided`, memory that the GPU reaches, gets what BatchAssembler::place() returns. Where no device code is
/// built it is not defined.
[[nodiscard]] const void* frame_batch_kernel();

}  // namespace warpline::flow
