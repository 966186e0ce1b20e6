// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/engine_testing.h"
#include "warpline/handoff/gpu_engine_testing.h"
#include "warpline/handoff/queues/queue_work.cuh"

WARPLINE_DEVICE_QUEUE_WORK(warpline::handoff::testing::Touch);
WARPLINE_DEVICE_QUEUE_WORK(warpline::handoff::testing::BreakGpu);
