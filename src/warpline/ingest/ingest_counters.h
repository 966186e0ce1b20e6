// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/datapath/stage.h"

namespace warpline::ingest {

/// `GatherCounters` are written by the lcore that receives and gathers.
struct alignas(64) GatherCounters {
  Counter copies;                 ///< batches copied, one asynchronous copy each
  Counter copied_bytes;           ///< of these, the alignment between packets included
  datapath::StageSamples submit;  ///< from a full batch to its copy queued
  Histogram batching;             ///< nanoseconds that the first packet of each batch waited for it to close
};

/// `DeliverCounters` are written by the lcore that receives batches back from the consumer.
struct alignas(64) DeliverCounters {
  Counter packets;    ///< that the consumer took
  Counter bytes;      ///< of these
  Histogram sending;  ///< nanoseconds from a batch seen done to all of it given to the transmit queue
};

/// `IngestCounters` is what one path of an ingest run counts beyond its QueuePath.
struct IngestCounters {
  GatherCounters gather;
  DeliverCounters deliver;
};

}  // namespace warpline::ingest
