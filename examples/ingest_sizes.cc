// SPDX-License-Identifier: Apache-2.0
// Receives from DPDK ports with a consumer of one's own, until SIGINT or SIGTERM: ingest_sizes [--packets N] PORT...
// Prints how many packets there were below each power of two of bytes.
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "warpline/ingest.h"

using namespace warpline;

namespace {

using Counts = std::array<std::atomic<std::uint64_t>, 16>;

/// Counts packets by size. Each lane of each path has a copy, all of them with the same counters.
class Sizes {
 public:
  static constexpr bool kStateless = true;

  explicit Sizes(Counts& counts) : counts_(&counts) {}

  Verdict operator()(FrameRef frame) const {
    const auto bits = static_cast<std::size_t>(std::bit_width(frame.length));
    (*counts_)[bits % counts_->size()].fetch_add(1, std::memory_order_relaxed);
    return Verdict::forward;
  }
  void merge(const Sizes&) {}

 private:
  Counts* counts_;
};

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  datapath::DatapathSettings settings;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--packets") == 0 && i + 1 < argc) {
      settings.packets = std::strtoull(argv[++i], nullptr, 10);
    } else {
      settings.ports.emplace_back().spec = argv[i];
    }
  }
  Counts counts{};
  const runtime::StopOnSignal on_signal;
  auto run = ingest::IngestRun::start(settings, {.path = ingest::IngestPath::zerocopy}, Sizes(counts));
  if (!run) return std::fprintf(stderr, "%s\n", run.error().message().c_str()), static_cast<int>(run.error().kind);
  const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested());
  const RunTotals totals = (*run)->totals();
  std::printf("received %lu, consumed %lu, dropped %lu\n", totals.rx.packets, totals.delivered->packets,
              totals.dropped());
  for (std::size_t bits = 0; bits < counts.size(); ++bits) {
    if (counts[bits] != 0) std::printf("below %lu bytes: %lu\n", 1UL << bits, counts[bits].load());
  }
  if (!ended) std::fprintf(stderr, "%s\n", ended.error().message().c_str());
  return ended ? 0 : static_cast<int>(ended.error().kind);
}
