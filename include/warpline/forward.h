// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Packets forwarded between DPDK ports, with work of one's own or built-in work, on host threads or GPUs.
/// Library warpline::dataplane.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/forward.h"
///
/// int main() {
///   warpline::datapath::DatapathSettings settings;
///   settings.ports.emplace_back().spec = "net_null0";
///   settings.packets = 1000;
///   auto run = warpline::forward::ForwardRun::start(settings);
///   if (!run) return std::fprintf(stderr, "%s\n", run.error().message().c_str()), 3;
///   const auto ended = (*run)->run(warpline::runtime::StopOnSignal::requested());
///   std::printf("received %lu packets\n", (*run)->totals().rx.packets);
///   return ended ? 0 : 3;
/// }
/// @endcode

#include "warpline/base/result.h"
#include "warpline/forward/forward_run.h"
#include "warpline/packet.h"
#include "warpline/runtime/stop.h"
#include "warpline/workload.h"
