// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Kernels for a functor of one's own, by which engines on a GPU run it: one .cu file of the program includes this and
/// names the functor. Such a program links the archive warpline::dataplane_static.
///
/// @code
/// #include "warpline/gpu_work.cuh"
///
/// struct DropLong {
///   static constexpr bool kStateless = true;
///   WARPLINE_HD warpline::Verdict operator()(warpline::FrameRef frame) const {
///     return frame.length > 1000 ? warpline::Verdict::user_drop : warpline::Verdict::forward;
///   }
///   WARPLINE_HD void merge(const DropLong&) {}
/// };
/// WARPLINE_DEVICE_WORK(DropLong);
/// @endcode

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/handoff/device_work.cuh"
