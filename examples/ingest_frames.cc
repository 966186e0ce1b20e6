// SPDX-License-Identifier: Apache-2.0
// Receives frames of 16 packets, each a 64-bit counter in front of 1 KiB, from DPDK ports into GPU memory, or into host
// memory where there is no GPU, until SIGINT or SIGTERM: ingest_frames [--packets N] PORT...
// Prints how many frames there were, and the sum of all bytes that arrived in them.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frame_sums.h"
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
  const bool on_gpu = gpu::list_gpus().ok();
  settings.forward.engine = on_gpu ? EngineKind::launch : EngineKind::inline_;
  ingest::IngestSettings receiving;
  receiving.path = on_gpu ? ingest::IngestPath::copy : ingest::IngestPath::zerocopy;
  receiving.frame = "format=counter,packets=16,payload=1024";
  FrameSums sums(on_gpu);
  const runtime::StopOnSignal on_signal;
  auto run = ingest::IngestRun::start_frames(settings, receiving, sums);
  if (!run) return fail(run.error());
  if (const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested()); !ended) return fail(ended.error());
  const auto counts = (*run)->frames();
  const auto sum = sums.sum();
  if (!counts || !sum) {
    return fail(environment_error("the sum in GPU memory", "CUDA cannot copy it", "see the log above"));
  }
  std::printf("in %s memory: %lu frames complete, %lu not, %lu packets missing, sum of bytes %llu\n",
              on_gpu ? "GPU" : "host", counts->complete, counts->incomplete, counts->missing, *sum);
  return 0;
}
