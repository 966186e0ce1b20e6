// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "commands.h"
#include "frame/forward_frame.h"
#include "warpline/forward/static_wire_proof.h"
#include "warpline/gpu/trace.h"
#include "warpline/port/port.h"
#include "warpline/report/forward_totals.h"
#include "warpline/report/live.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/traffic/generator.h"
#include "warpline/traffic/send_frames.h"
#include "warpline/workload/with_workload.h"

namespace warpline {
namespace {

/// One `forward` run, from the command line to the report.
class ForwardCommand : ForwarderFrame {
 public:
  explicit ForwardCommand(const config::LoadedConfig& loaded) : ForwarderFrame(loaded) {}

  Result<int> run() {
    const bool makes_traffic = config_.forward.loopback || config_.forward.tx_first != 0;
    WARPLINE_CHECK(plan_forwarding(makes_traffic, [this](forward::LoopbackSettings& far) {
      if (effect() == workload::FrameEffect::macs_swapped) far.macs = traffic::MacRule::swapped;
    }));
    WARPLINE_CHECK(open());
    WARPLINE_CHECK(prepare(nullptr));
    announce(ports(), &opened_ports().recycling());
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      report::add(snapshot, totals());
      report::add(snapshot, ports());
      report::add(snapshot, forwarder().paths(), ports());
      if (capture_) report::add(snapshot, capture_->totals());
    }));
    WARPLINE_CHECK(launch_forwarding([this] { return begin(); }));
    const report::LiveResult live = supervise(
        {.totals = [this] { return totals(); }, .through = [this] { return forwarded(); }, .look = [this] { look(); }});
    if (capturing_) gpu::stop_profiler_capture();
    return report(live);
  }

 private:
  /// What the workload makes of a frame. A loopback's is known, or there would be nothing to compare with.
  [[nodiscard]] workload::FrameEffect effect() const { return workload::traits_of(config_.forward.workload).effect; }

  /// Sends --tx-first packets out of every port, so that something circulates on a wire that loops back.
  Result<void> send_first() {
    for (std::uint16_t i = 0; i < ports().size(); ++i) {
      WARPLINE_CHECK(traffic::Generator::check_pool(*traffic_, opened_ports().sending_pool(i)));
      traffic::Generator generator(*traffic_, i, opened_ports().sending_pool(i));
      first_ += traffic::send_frames(generator, {ports()[i].id(), 0}, config_.forward.tx_first);
    }
    return {};
  }

  Result<void> begin() {
    if (config_.forward.tx_first != 0) WARPLINE_CHECK(send_first());
    if (effect() != workload::FrameEffect::unknown) proof_.emplace(ports(), opened_ports().pools());
    return {};
  }

  void look() {
    if (uses_gpu() && !capturing_ && forwarded().packets >= config_.run.warmup) {
      capturing_ = true;
      gpu::start_profiler_capture();
    }
  }

  [[nodiscard]] RunTotals totals() const {
    RunTotals totals = report::totals_of(forwarder(), far());
    if (config_.forward.tx_first != 0) {
      totals.generated = first_;
      totals.tx += first_;
    }
    if (!counts_bytes()) {
      totals.rx.bytes = device_bytes(&port::PortCounters::rx_packets, &port::PortCounters::rx_bytes);
      totals.tx.bytes = device_bytes(&port::PortCounters::tx_packets, &port::PortCounters::tx_bytes);
    }
    return totals;
  }

  /// What the rate is of.
  [[nodiscard]] Tally forwarded() const {
    Tally tally = report::forwarded_by(forwarder());
    if (!counts_bytes()) {
      const std::uint64_t sent = device_bytes(&port::PortCounters::tx_packets, &port::PortCounters::tx_bytes);
      tally.bytes = sent - std::min(sent, first_.bytes);
    }
    return tally;
  }

  [[nodiscard]] bool counts_bytes() const { return forwarder().paths().front()->counts_bytes; }

  /// Where no stage weighs the packets, the devices say how many bytes they were; 0 if one of them does not count.
  [[nodiscard]] std::uint64_t device_bytes(std::uint64_t port::PortCounters::* packets,
                                           std::uint64_t port::PortCounters::* bytes) const {
    std::uint64_t sum = 0;
    for (const port::Port& port : ports()) {
      const port::PortCounters counters = port.counters();
      if (counters.*packets != 0 && counters.*bytes == 0) return 0;
      sum += counters.*bytes;
    }
    return sum;
  }

  [[nodiscard]] bool uses_gpu() const {
    return runs_on_gpu(config_.forward.engine) || config_.pool.memory != memory::MemoryKind::host;
  }

  /// On a static wire the frames themselves say what was done to them.
  void prove(report::RunReport& report) const {
    if (proof_->by_buffers() && forwarder().failure()) {
      report.notes.push_back("buffers were not verified: the engine that failed had some in hand");
      return;
    }
    const bool swaps = effect() == workload::FrameEffect::macs_swapped;
    const forward::StaticWireProof::Outcome outcome = proof_->outcome(swaps, forwarder().paths());
    if (outcome.checked == 0) {
      if (config_.run.verify && !config_.forward.loopback) report.notes.push_back("no frame's bytes were verified");
      return;
    }
    std::optional<VerifyTotals>& verify = report.totals.verify;
    if (!verify) verify.emplace();
    verify->checked = outcome.checked;
    verify->bad += outcome.bad;
  }

  int report(const report::LiveResult& live) {
    report::RunReport report = begin_report(live, ports());
    report.totals = totals();
    report.queues = far_queues();
    report.counted = report::counted_by(forwarder());
    if (capture_) report.add_capture(capture_->totals());
    if (uses_gpu()) report.gpu = gpu_totals(opened_ports().gpu_memory().value);
    if (proof_) prove(report);
    add_recycling(report, opened_ports().recycling(), near_ports());
    for (const port::Port& port : ports()) {
      const std::string& access = port.setup().device_access;
      if (!access.empty()) report.notes.push_back(fmt::format("port {} reaches GPU memory {}", port.name(), access));
    }
    if (const std::uint64_t wanted = std::uint64_t{config_.forward.tx_first} * ports().size();
        first_.packets < wanted) {
      report.notes.push_back(fmt::format("of {} packets to send first, the ports took {}", wanted, first_.packets));
    }
    const std::optional<Error> failure = forwarder().failure();
    if (failure) report.notes.push_back(failure->message());
    print(report);
    if (failure && config_.forward.on_gpu_failure == datapath::GpuFailure::stop) {
      spdlog::error("{}", failure->message());
      return static_cast<int>(failure->kind);
    }
    return report::exit_code(report, live.interrupted);
  }

  Tally first_;  ///< of --tx-first, sent
  std::optional<forward::StaticWireProof> proof_;
  bool capturing_ = false;  ///< by a profiler: from the end of the warm-up on
};

}  // namespace

Result<int> run_forward(const config::LoadedConfig& loaded) { return ForwardCommand(loaded).run(); }

}  // namespace warpline
