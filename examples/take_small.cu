// SPDX-License-Identifier: Apache-2.0
// The kernels of TakeSmall.
#include "take_small.h"
#include "warpline/handoff/device_work.cuh"

WARPLINE_DEVICE_WORK(TakeSmall);
