// SPDX-License-Identifier: Apache-2.0
// The kernels of every workload that `forward` knows.
#include "warpline/handoff/device_work.cuh"
#include "warpline/workload/with_workload.h"

WARPLINE_DEVICE_WORK(warpline::NoWork);
WARPLINE_DEVICE_WORK(warpline::FrameLimits<warpline::MacSwap>);
WARPLINE_DEVICE_WORK(warpline::FrameLimits<warpline::Count>);
WARPLINE_DEVICE_WORK(warpline::FrameLimits<warpline::ChecksumVerify>);
WARPLINE_DEVICE_WORK(warpline::FrameLimits<warpline::Spin<>>);
WARPLINE_DEVICE_WORK(warpline::FrameLimits<warpline::UserWork>);
