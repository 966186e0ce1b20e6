// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// What is done to each packet, as a functor that runs on a host and on a GPU. Library warpline::dataplane.
///
/// @code
/// #include "warpline/workload.h"
///
/// struct DropLong {
///   static constexpr warpline::WorkloadKind kKind = warpline::WorkloadKind::user;
///   static constexpr bool kStateless = true;
///   warpline::Verdict operator()(warpline::FrameRef frame) const {
///     return frame.length > 1000 ? warpline::Verdict::user_drop : warpline::Verdict::forward;
///   }
///   void merge(const DropLong&) {}
/// };
///
/// int main() {
///   const warpline::forward::StageMaker maker = warpline::forward::stages_with(DropLong{});
///   return maker ? 0 : 1;
/// }
/// @endcode

#include "warpline/base/frame.h"
#include "warpline/base/kinds.h"
#include "warpline/base/verdict.h"
#include "warpline/forward/make_stages.h"
#include "warpline/workload/workload.h"
