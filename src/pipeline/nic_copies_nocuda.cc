// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda_error.h"
#include "pipeline/nic_copies.h"

namespace warpline {

class NicCopies::Lanes {};

NicCopies::NicCopies(std::vector<std::uint16_t> /*gpus*/) {}
NicCopies::~NicCopies() = default;
Result<void> NicCopies::start() { return {}; }
void NicCopies::stop() {}
Result<void> NicCopies::install(const Port& /*port*/) { return built_without_cuda("packets in GPU memory"); }

}  // namespace warpline
