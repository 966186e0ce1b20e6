// SPDX-License-Identifier: Apache-2.0
// Receives from DPDK ports into GPU memory, for a kernel of one's own per batch, until SIGINT or SIGTERM:
// ingest_batches [--packets N] PORT...
// Prints how many packets there were below each power of two of bytes.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "batch_sizes.h"
#include "warpline/gpu/device.h"
#include "warpline/ingest/ingest_run.h"
#include "warpline/runtime/stop.h"

using namespace warpline;

namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return static_cast<int>(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  datapath::DatapathSettings settings;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--packets") == 0 && i + 1 < argc) {
      settings.packets = std::strtoull(argv[++i], nullptr, 10);
    } else {
      settings.ports.emplace_back().spec = argv[i];
    }
  }
  if (const auto gpus = gpu::list_gpus(); !gpus) return fail(gpus.error());
  BatchSizes sizes;
  const runtime::StopOnSignal on_signal;
  auto run = ingest::IngestRun::start_batches(settings, {.path = ingest::IngestPath::copy}, sizes);
  if (!run) return fail(run.error());
  const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested());
  const RunTotals totals = (*run)->totals();
  std::printf("received %lu, consumed %lu, dropped %lu\n", totals.rx.packets, totals.delivered->packets,
              totals.dropped());
  if (!ended) return fail(ended.error());
  const auto counts = sizes.counts();
  if (!counts) return fail(environment_error("the counts in GPU memory", "CUDA cannot copy them", "see the log above"));
  for (unsigned bits = 0; bits < counts->size(); ++bits) {
    if ((*counts)[bits] != 0) std::printf("below %lu bytes: %llu\n", 1UL << bits, (*counts)[bits]);
  }
  return 0;
}
