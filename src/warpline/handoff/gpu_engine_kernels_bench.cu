// SPDX-License-Identifier: Apache-2.0
// The kernels of the benchmark's work.
#include "warpline/handoff/device_work.cuh"
#include "warpline/handoff/gpu_engine_testing.h"

WARPLINE_DEVICE_WORK(warpline::handoff::testing::TouchFirstWords);
