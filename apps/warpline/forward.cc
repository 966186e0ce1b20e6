// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands.h"
#include "forward_frame.h"
#include "run_frame.h"
#include "warpline/base/give_way.h"
#include "warpline/forward/static_wire_proof.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/trace.h"
#include "warpline/port/port.h"
#include "warpline/report/forward_totals.h"
#include "warpline/report/live.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"
#include "warpline/traffic/generator.h"
#include "warpline/traffic/send_frames.h"
#include "warpline/workload/with_workload.h"

namespace warpline {
namespace {

/// One `forward` run, from the command line to the report. Members are destroyed in reverse: lcores end before the
/// stages that they run, ports close before their pools, the EAL goes last.
class ForwardRun {
 public:
  explicit ForwardRun(const config::LoadedConfig& loaded) : loaded_(loaded), config_(loaded.config) {}
  ForwardRun(const ForwardRun&) = delete;
  ForwardRun& operator=(const ForwardRun&) = delete;
  ~ForwardRun() {
    leaving_.emplace("giving back ports and memory", runtime::SetupStep::Of::clean_up);
    wind_up(far_.get(), forwarder_.get(), workers_, ports_);
  }

  Result<int> run() {
    WARPLINE_CHECK(plan());
    if (config_.forward.nvtx) WARPLINE_CHECK(gpu::start_tracing());
    ports_.emplace(config_.datapath(), plan_.layout, traffic_ ? traffic_->max_frame_bytes() : 0, config_.traffic.burst);
    WARPLINE_TRY(runtime::Eal eal,
                 runtime::Eal::start(config_.runtime, plan_.lcores, plan_.inputs.specs, ports_->host_memory()));
    eal_.emplace(std::move(eal));
    WARPLINE_CHECK(ports_->open());
    link_notes_ = report::await_links(ports_->ports());
    if (config_.forward.loopback) WARPLINE_CHECK(traffic::Generator::check_pool(*traffic_, ports_->sending_pool(1)));
    WARPLINE_CHECK(prepare());
    report::announce(report::notes_of(plan_.lcores, *eal_, ports_->ports()));
    report::announce(recycling_notes(loaded_, ports_->recycling()));
    report::announce(link_notes_);
    WARPLINE_CHECK(launch());
    const report::LiveResult live = supervise();
    workers_->wait();
    if (capturing_) gpu::stop_profiler_capture();
    forwarder_->finish();
    return report(live);
  }

 private:
  /// All that can be decided, and refused, before DPDK starts.
  Result<void> plan() {
    if (config_.forward.loopback || config_.forward.tx_first != 0) {
      WARPLINE_TRY(traffic::TrafficPlan traffic, traffic::TrafficPlan::make(config_.traffic, config_.run.seed));
      traffic_.emplace(std::move(traffic));
    }
    WARPLINE_TRY(plan_, plan_forwarding(config_));
    return {};
  }

  /// What the workload makes of a frame. A loopback's is known, or there would be nothing to compare with.
  [[nodiscard]] workload::FrameEffect effect() const { return workload::traits_of(config_.forward.workload).effect; }

  /// Sends --tx-first packets out of every port, so that something circulates on a wire that loops back.
  Result<void> send_first() {
    for (std::uint16_t i = 0; i < ports_->ports().size(); ++i) {
      WARPLINE_CHECK(traffic::Generator::check_pool(*traffic_, ports_->sending_pool(i)));
      traffic::Generator generator(*traffic_, i, ports_->sending_pool(i));
      first_ += traffic::send_frames(generator, {ports_->ports()[i].id(), 0}, config_.forward.tx_first);
    }
    return {};
  }

  /// The last that can be refused: with one line, so notes come after it.
  Result<void> prepare() {
    WARPLINE_TRY(forwarder_,
                 forward::Forwarder::create(config_.datapath(), plan_.layout, plan_.lcores, ports_->near()));
    forwarder_->recycle_with(ports_->recycling());
    if (config_.forward.loopback) make_far_side();
    return forwarder_->prepare();
  }

  Result<void> launch() {
    {
      const runtime::SetupStep step("starting the GPU's copies");
      WARPLINE_CHECK(ports_->start_copies());
    }
    WARPLINE_CHECK(forwarder_->start());
    if (config_.forward.tx_first != 0) WARPLINE_CHECK(send_first());
    if (effect() != workload::FrameEffect::unknown) proof_.emplace(ports_->ports(), ports_->pools());
    workers_.emplace(plan_.lcores);
    started_s_ = report::monotonic_seconds();
    return launch_roles(plan_, *forwarder_, far_workers_, *workers_);
  }

  void make_far_side() {
    traffic::TrafficGroup::Options options = far_options(config_, *ports_);
    if (effect() == workload::FrameEffect::macs_swapped) options.macs = traffic::MacRule::swapped;
    far_ = std::make_unique<traffic::TrafficGroup>(*std::move(traffic_), options);
    far_workers_ = far_workers(*far_, plan_, *ports_);
  }

  report::LiveResult supervise() {
    const auto stop = [this] { far_ ? far_->stop() : forwarder_->stop(); };
    const auto done = [this] {
      stop_if_done(plan_, config_.run.packets, far_.get(), *forwarder_, ports_->ports());
      if (config_.forward.on_gpu_failure == datapath::GpuFailure::stop && forwarder_->failure())
        give_up(far_.get(), *forwarder_);
      if (uses_gpu() && !capturing_ && forwarded().packets >= config_.run.warmup) {
        capturing_ = true;
        gpu::start_profiler_capture();
      }
      return !workers_->running();
    };
    return report::run_live(config_.run,
                            {.started_s = started_s_,
                             .sample = [this] { return totals(); },
                             .progress = [this] { return forwarded(); },
                             .done = done,
                             .stop = stop},
                            runtime::StopOnSignal::requested());
  }

  [[nodiscard]] RunTotals totals() const {
    RunTotals totals = report::totals_of(*forwarder_, far_.get());
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
    Tally tally = report::forwarded_by(*forwarder_);
    if (!counts_bytes()) tally.bytes = device_bytes(&port::PortCounters::tx_packets, &port::PortCounters::tx_bytes);
    return tally;
  }

  [[nodiscard]] bool counts_bytes() const { return forwarder_->paths().front()->counts_bytes; }

  /// Where no stage weighs the packets, the devices say how many bytes they were; 0 if one of them does not count.
  [[nodiscard]] std::uint64_t device_bytes(std::uint64_t port::PortCounters::* packets,
                                           std::uint64_t port::PortCounters::* bytes) const {
    std::uint64_t sum = 0;
    for (const port::Port& port : ports_->ports()) {
      const port::PortCounters counters = port.counters();
      if (counters.*packets != 0 && counters.*bytes == 0) return 0;
      sum += counters.*bytes;
    }
    return sum;
  }

  [[nodiscard]] bool uses_gpu() const {
    return runs_on_gpu(config_.forward.engine) || config_.pool.memory != memory::MemoryKind::host;
  }

  [[nodiscard]] std::optional<report::GpuTotals> gpu_totals() const {
    if (!uses_gpu()) return std::nullopt;
    const datapath::ForwardSettings& forward = config_.forward;
    report::GpuTotals totals;
    totals.engine = name(forward.engine);
    for (const std::uint16_t ordinal : forward.gpus) {
      const Result<gpu::GpuFacts> gpu = gpu::find_gpu(ordinal);
      totals.name += fmt::format("{}{}", totals.name.empty() ? "" : ", ", gpu ? gpu->name : "a GPU that failed");
    }
    if (forward.engine == EngineKind::persistent) totals.ctas = std::min(forward.ctas, forward.ring_slots);
    totals.memory_bytes = ports_->gpu_memory().value;
    return totals;
  }

  /// far_queues is what the generator and checker of a loopback did, each worker with a queue pair of its own: whether
  /// the rate that was asked for was kept.
  [[nodiscard]] std::vector<traffic::QueueTotals> far_queues() const {
    std::vector<traffic::QueueTotals> queues;
    for (std::uint16_t i = 0; i < far_->options().workers; ++i) {
      traffic::QueueTotals& queue = queues.emplace_back(far_->queue_totals(i));
      queue.port = ports_->ports()[1].name();
      queue.queue = i;
    }
    return queues;
  }

  /// On a static wire the frames themselves say what was done to them.
  void prove(report::RunReport& report) const {
    if (proof_->by_buffers() && forwarder_->failure()) {
      report.notes.push_back("buffers were not verified: the engine that failed had some in hand");
      return;
    }
    const bool swaps = effect() == workload::FrameEffect::macs_swapped;
    const forward::StaticWireProof::Outcome outcome = proof_->outcome(swaps, forwarder_->paths());
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
    report::RunReport report = report_of(loaded_, live, plan_.lcores, *eal_, ports_->ports());
    report.totals = totals();
    if (far_ && !std::holds_alternative<std::monostate>(config_.traffic.rate)) report.queues = far_queues();
    report.counted = report::counted_by(*forwarder_);
    report.gpu = gpu_totals();
    report.notes.insert(report.notes.end(), link_notes_.begin(), link_notes_.end());
    if (proof_) prove(report);
    const std::span<const port::Port> ports = ports_->ports();
    add_recycling(report, loaded_, ports_->recycling(), config_.forward.loopback ? ports.first(1) : ports);
    for (const port::Port& port : ports_->ports()) {
      const std::string& access = port.setup().device_access;
      if (!access.empty()) report.notes.push_back(fmt::format("port {} reaches GPU memory {}", port.name(), access));
    }
    if (const std::uint64_t wanted = std::uint64_t{config_.forward.tx_first} * ports_->ports().size();
        first_.packets < wanted) {
      report.notes.push_back(fmt::format("of {} packets to send first, the ports took {}", wanted, first_.packets));
    }
    const std::optional<Error> failure = forwarder_->failure();
    if (failure) report.notes.push_back(failure->message());
    report::print(report, config_.run);
    if (failure && config_.forward.on_gpu_failure == datapath::GpuFailure::stop) {
      spdlog::error("{}", failure->message());
      return static_cast<int>(failure->kind);
    }
    return report::exit_code(report, live.interrupted);
  }

  runtime::StopOnSignal on_signal_;  ///< goes last: an interrupt cuts short neither set-up nor clean-up
  const config::LoadedConfig& loaded_;
  config::Config config_;
  ForwardPlan plan_;
  std::optional<traffic::TrafficPlan> traffic_;
  Tally first_;                          ///< of --tx-first, sent
  std::vector<std::string> link_notes_;  ///< of links that were down when the run began

  std::optional<runtime::SetupStep> leaving_;  ///< names a clean-up that hangs, from the destructor on
  std::optional<runtime::Eal> eal_;
  std::optional<forward::ForwardPorts> ports_;
  std::optional<forward::StaticWireProof> proof_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  std::unique_ptr<traffic::TrafficGroup> far_;
  FarWorkers far_workers_;
  std::optional<runtime::Workers> workers_;
  double started_s_ = 0;
  bool capturing_ = false;  ///< by a profiler: from the end of the warm-up on
};

}  // namespace

Result<int> run_forward(const config::LoadedConfig& loaded) { return ForwardRun(loaded).run(); }

}  // namespace warpline
