// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/nic_copies.h"
#include "warpline/gpu/cuda_error.h"

namespace warpline::forward {

class NicCopies::Lanes {};

NicCopies::NicCopies(std::span<const std::uint16_t> /*gpus*/) {}
NicCopies::~NicCopies() = default;
Result<void> NicCopies::start() { return {}; }
void NicCopies::stop() {}
Result<void> NicCopies::install(const port::Port& /*port*/) { return gpu::built_without_cuda("packets in GPU memory"); }

}  // namespace warpline::forward
