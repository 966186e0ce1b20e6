// SPDX-License-Identifier: Apache-2.0
// The kernels of every workload that `forward` knows.
#include "warpline/handoff/device_work.cuh"
#include "warpline/workload/with_workload.h"

WARPLINE_DEVICE_WORK(warpline::workload::NoWork);
WARPLINE_DEVICE_WORK(warpline::workload::FrameLimits<warpline::workload::MacSwap>);
WARPLINE_DEVICE_WORK(warpline::workload::FrameLimits<warpline::workload::Count>);
WARPLINE_DEVICE_WORK(warpline::workload::FrameLimits<warpline::workload::ChecksumVerify>);
WARPLINE_DEVICE_WORK(warpline::workload::FrameLimits<warpline::workload::Spin<>>);
WARPLINE_DEVICE_WORK(warpline::workload::FrameLimits<warpline::UserWork>);
