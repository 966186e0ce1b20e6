// SPDX-License-Identifier: Apache-2.0
// The kernels of the benchmark's work.
#include "handoff/device_work.cuh"
#include "handoff/gpu_engine_testing.h"

WARPLINE_DEVICE_WORK(warpline::testing::TouchFirstWords);
