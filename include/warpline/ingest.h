// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Packets received into memory of the host or of a GPU for a consumer of one's own: packet by packet, in batches, or
/// as frames that are put together from packets. Library warpline::dataplane.
///
/// @code
/// #include <cstdio>
///
/// #include "warpline/ingest.h"
///
/// struct Drop {
///   static constexpr bool kStateless = true;
///   warpline::Verdict operator()(warpline::FrameRef) const { return warpline::Verdict::user_drop; }
///   void merge(const Drop&) {}
/// };
///
/// int main() {
///   warpline::datapath::DatapathSettings settings;
///   settings.ports.emplace_back().spec = "net_null0";
///   settings.packets = 1000;
///   auto run = warpline::ingest::IngestRun::start(settings, {.path = warpline::ingest::IngestPath::zerocopy}, Drop{});
///   if (!run) return std::fprintf(stderr, "%s\n", run.error().message().c_str()), 3;
///   const auto ended = (*run)->run(warpline::runtime::StopOnSignal::requested());
///   std::printf("dropped %lu packets\n", (*run)->totals().dropped());
///   return ended ? 0 : 3;
/// }
/// @endcode

#include "warpline/base/result.h"
#include "warpline/ingest/ingest_run.h"
#include "warpline/packet.h"
#include "warpline/runtime/stop.h"
