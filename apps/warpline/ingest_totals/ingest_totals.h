// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/forward/forwarder.h"
#include "warpline/ingest/ingest_paths.h"
#include "warpline/port/port.h"
#include "warpline/report/report.h"
#include "warpline/traffic/traffic_group.h"

namespace warpline {

/// What the totals of an ingest run are added up from.
struct IngestSources {
  const forward::Forwarder& forwarder;
  const ingest::IngestPaths& paths;
  const traffic::TrafficGroup* far;  ///< of a loopback; else null
  const port::Port& near_port;       ///< that a loopback's packets are received from
  bool transmits;
  bool verifies;  ///< the consumer compares bytes and finds duplicates
};

/// Everything counted so far. Packets that the port dropped by name are no missing ones.
[[nodiscard]] RunTotals ingest_run_totals(const IngestSources& from);

/// What only `ingest` reports, but for the names of consumer and engine. `near`: the ports that are received from.
[[nodiscard]] report::IngestReport ingest_report(const forward::Forwarder& forwarder, const ingest::IngestPaths& paths,
                                                 std::span<const port::Port> near, const RunTotals& totals);

/// Adds what became of frames and of the packets that were to be in them, and what the consumer of frames counted.
void add_frames(report::IngestReport& report, const ingest::FrameTotals& frames);

}  // namespace warpline
