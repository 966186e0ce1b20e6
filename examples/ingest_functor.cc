// SPDX-License-Identifier: Apache-2.0
// Receives from DPDK ports with a consumer of one's own that a host or a GPU runs, until SIGINT or SIGTERM:
// ingest_functor [inline|thread|launch|graph|persistent] [--packets N] PORT...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "take_small.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/kinds.h"
#include "warpline/ingest/ingest_run.h"
#include "warpline/runtime/stop.h"

using namespace warpline;

namespace {

constexpr auto kEngines = kEnumNames<EngineKind>;

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
    } else if (const auto engine = std::ranges::find(kEngines, argv[i]); engine != kEngines.end()) {
      settings.forward.engine = static_cast<EngineKind>(engine - kEngines.begin());
    } else {
      settings.ports.emplace_back().spec = argv[i];
    }
  }
  const runtime::StopOnSignal on_signal;
  auto run = ingest::IngestRun::start_anywhere(settings, {.path = ingest::IngestPath::copy}, TakeSmall());
  if (!run) return fail(run.error());
  const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested());
  const RunTotals totals = (*run)->totals();
  std::printf("received %lu, consumed %lu, dropped %lu\n", totals.rx.packets, totals.delivered->packets,
              totals.dropped());
  if (!ended) return fail(ended.error());
  const auto counted = (*run)->consumed();
  if (counted) std::printf("small: %lu packets of %lu bytes\n", counted->packets, counted->bytes);
  return 0;
}
