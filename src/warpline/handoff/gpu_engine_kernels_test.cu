// SPDX-License-Identifier: Apache-2.0
// The kernels of the works that the tests give to GPU engines.
#include "warpline/handoff/device_work.cuh"
#include "warpline/handoff/engine_testing.h"
#include "warpline/handoff/gpu_engine_testing.h"
#include "warpline/handoff/skipping_testing.h"

WARPLINE_DEVICE_WORK(warpline::handoff::testing::Touch);
WARPLINE_DEVICE_WORK(warpline::handoff::testing::BreakGpu);
WARPLINE_DEVICE_WORK(warpline::handoff::testing::CountOften);
WARPLINE_DEVICE_WORK(warpline::handoff::testing::SkipOne);
