// SPDX-License-Identifier: Apache-2.0
// The kernels of the consumers that `ingest` knows.
#include "warpline/handoff/device_work.cuh"
#include "warpline/ingest/consumers/built_in_consumers.h"
#include "warpline/ingest/consumers/consume_together.cuh"

WARPLINE_DEVICE_WORK(warpline::ingest::PatternCheck);
WARPLINE_DEVICE_WORK(warpline::ingest::ByteSum);
WARPLINE_DEVICE_WORK(warpline::ingest::UserConsumer);
