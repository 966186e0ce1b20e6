// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/ingest/batches/gpu_batch.h"

namespace warpline::ingest {

/// Packets whose first byte is this one are dropped by the kernel.
inline constexpr std::uint8_t kRefusedByte = 13;

/// Loads the kernels: beside one that runs CUDA might wait with that. False when CUDA refuses.
[[nodiscard]] bool load_gate_and_sums();

/// Puts on the batch's stream: a kernel that waits until `*gate`, which host and GPU see, is not 0; one that adds up
/// the packets' bytes in `*sum`, as frame_sum() has them, and drops those that begin with kRefusedByte. False when CUDA
/// refuses.
[[nodiscard]] bool queue_gate_and_sums(const GpuBatch& batch, const std::uint64_t* gate, std::uint64_t* sum);

}  // namespace warpline::ingest
