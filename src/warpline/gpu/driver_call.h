// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpline::gpu {

/// Returns the driver's function of that name, as of CUDA 12.0, which the CUDA runtime does not have; nullptr where
/// there is none. Where the program is built without CUDA it is not defined.
[[nodiscard]] void* driver_call(const char* name);

}  // namespace warpline::gpu
