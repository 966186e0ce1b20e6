// SPDX-License-Identifier: Apache-2.0
// Forwards between DPDK ports with work of one's own, until SIGINT or SIGTERM: forward [--packets N] PORT...
// Port 0 sends to port 1 and back; a port without a partner sends out of itself.
#include "warpline/forward.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace warpline;

namespace {

/// Drops UDP datagrams to the discard port and sends all else on. Each lane of each path has a copy.
class DropDiscard {
 public:
  static constexpr WorkloadKind kKind = WorkloadKind::user;
  static constexpr bool kStateless = true;

  Verdict operator()(FrameRef frame) {
    const packet::ParsedFrame parsed = packet::parse(frame);
    if (is_drop(parsed.verdict) || parsed.l4 != packet::L4Kind::udp) return parsed.verdict;
    std::uint8_t port[2];
    const bool read = packet::gather(frame, parsed.l4_offset + packet::UdpView::kDestinationPort, sizeof(port), port);
    return read && packet::load_be16(port) == kDiscard ? Verdict::user_drop : Verdict::forward;
  }
  void merge(const DropDiscard&) {}

 private:
  static constexpr std::uint16_t kDiscard = 9;
};

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  datapath::DatapathSettings settings;
  settings.forward.workload = WorkloadKind::user;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--packets") == 0 && i + 1 < argc) {
      settings.packets = std::strtoull(argv[++i], nullptr, 10);
    } else {
      settings.ports.emplace_back().spec = argv[i];
    }
  }
  const runtime::StopOnSignal on_signal;
  auto run = forward::ForwardRun::start(settings, {}, forward::stages_with(DropDiscard{}));
  if (!run) return std::fprintf(stderr, "%s\n", run.error().message().c_str()), static_cast<int>(run.error().kind);
  const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested());
  const RunTotals totals = (*run)->totals();
  std::printf("received %lu, sent %lu, dropped %lu\n", totals.rx.packets, totals.tx.packets, totals.dropped());
  if (!ended) std::fprintf(stderr, "%s\n", ended.error().message().c_str());
  return ended ? 0 : static_cast<int>(ended.error().kind);
}
