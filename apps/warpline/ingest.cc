// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "forward_frame.h"
#include "ingest_totals.h"
#include "run_frame.h"
#include "warpline/base/give_way.h"
#include "warpline/base/time/clock.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/trace.h"
#include "warpline/ingest/ingest_paths.h"
#include "warpline/ingest/static_frames.h"
#include "warpline/report/live.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"
#include "warpline/traffic/generator.h"

namespace warpline {
namespace {

using ingest::ConsumerKind;
using ingest::IngestPath;

constexpr std::uint16_t kPersistentCtas = 16;

/// One `ingest` run, from the command line to the report. Members are destroyed in reverse: lcores end before the
/// stages that they run, ports close before their pools, the EAL goes last.
class IngestCommand {
 public:
  explicit IngestCommand(const config::LoadedConfig& loaded)
      : loaded_(loaded), config_(loaded.config), paths_(config_.ingest) {}
  IngestCommand(const IngestCommand&) = delete;
  IngestCommand& operator=(const IngestCommand&) = delete;
  ~IngestCommand() {
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
    WARPLINE_CHECK(check_device_pool());
    static_wires_ = ingest::on_static_wires(config_.ports);
    if (static_wires_ && consumer_ == ConsumerKind::verify) {
      ingest::fill_with_frames(ports_->pools(), *traffic_, ticks_now());
    }
    link_notes_ = report::await_links(ports_->ports());
    if (config_.forward.loopback) WARPLINE_CHECK(traffic::Generator::check_pool(*traffic_, ports_->sending_pool(1)));
    WARPLINE_CHECK(prepare());
    report::announce(report::notes_of(plan_.lcores, *eal_, ports_->ports()));
    report::announce(link_notes_);
    WARPLINE_CHECK(launch());
    const report::LiveResult live = supervise();
    workers_->wait();
    forwarder_->finish();
    return report(live);
  }

 private:
  [[nodiscard]] bool transmits() const { return config_.ingest.transmit; }
  [[nodiscard]] bool on_gpu() const { return runs_on_gpu(config_.forward.engine); }

  /// All that can be decided, and refused, before DPDK starts.
  Result<void> plan() {
    WARPLINE_CHECK(choose_engine());
    choose_consumer();
    if (config_.forward.loopback || consumer_ == ConsumerKind::verify) {
      WARPLINE_TRY(traffic::TrafficPlan traffic, traffic::TrafficPlan::make(config_.traffic, config_.run.seed));
      traffic_.emplace(std::move(traffic));
    }
    WARPLINE_TRY(plan_, plan_forwarding(config_));
    return {};
  }

  /// What "auto" comes to on this machine, and where packets are received into for it.
  Result<void> choose_engine() {
    const ingest::IngestSettings& ingest = config_.ingest;
    datapath::ForwardSettings& forward = config_.forward;
    const bool wants_gpu =
        ingest.path == IngestPath::device || (ingest.memory && *ingest.memory != memory::MemoryKind::host);
    if (ingest.engine) {
      forward.engine = *ingest.engine;
    } else if (ingest.memory == memory::MemoryKind::host) {
      forward.engine = EngineKind::inline_;
    } else {
      const auto gpus = gpu::list_gpus();
      if (!gpus && wants_gpu) return gpus.error();
      forward.engine = gpus ? EngineKind::persistent : EngineKind::inline_;
    }
    config_.pool.memory = ingest::pool_memory(ingest.path, on_gpu());
    if (forward.engine == EngineKind::persistent && !is_given(loaded_, "forward.ctas")) {
      forward.ctas = ingest.frame.empty() ? kPersistentCtas : 1;
    }
    const std::uint16_t ring = config_.ports.empty() ? config_.port_defaults.rx_ring : config_.ports.front().rx_ring;
    forward.adaptive_burst = ingest.adaptive;
    forward.frees_at_once = ingest::copies(ingest.path) && !transmits();
    if (ingest.adaptive) forward.burst = std::min(forward.burst, ring);
    forward.model = datapath::ModelKind::run_to_completion;
    forward.workload = WorkloadKind::user;  // the consumer reads all bytes, so they are counted
    if (!transmits()) forward.recycle = memory::RecycleWay::off;
    return {};
  }

  void choose_consumer() {
    consumer_ = config_.ingest.consumer;
    if (!config_.ingest.frame.empty()) consumer_ = ConsumerKind::sum;  // of bytes that nobody compares
    if (consumer_ != ConsumerKind::automatic) return;
    consumer_ = config_.forward.loopback || config_.run.verify ? ConsumerKind::verify : ConsumerKind::sum;
  }

  /// Where the NIC writes GPU memory, its pools are what the budget is for, or half of it with frames.
  Result<void> check_device_pool() const {
    const Bytes taken = ports_->gpu_memory();
    const Bytes budget = ingest::share_of_budget(config_.ingest, 1).packets;
    if (!config_.ingest.gpu_memory || taken <= budget) return {};
    return usage_error(fmt::format("cannot keep {} bytes of GPU memory", config_.ingest.gpu_memory->value),
                       fmt::format("the packet buffers of the ports take {}{}", taken.value,
                                   config_.ingest.frame.empty() ? "" : ", and half of it is for frames"),
                       "use a larger --gpu-memory, or a smaller --rx-ring, --tx-ring, --pool-cache or --data-room");
  }

  [[nodiscard]] forward::StageMaker stage_maker() {
    if (!config_.ingest.frame.empty()) return paths_.assembling();
    switch (consumer_) {
      case ConsumerKind::automatic:
      case ConsumerKind::verify:
        return paths_.verifying(*traffic_,
                                {.streams = config_.forward.loopback ? config_.forward.pipelines : kAnyStream,
                                 .started = config_.forward.loopback ? ticks_now() : 0,
                                 .finds_duplicates = !static_wires_});
      case ConsumerKind::sum:
        return paths_.summing();
      case ConsumerKind::user:
        return paths_.user();
    }
    __builtin_unreachable();
  }

  /// The last that can be refused: with one line, so notes come after it.
  Result<void> prepare() {
    WARPLINE_TRY(forwarder_, forward::Forwarder::create(config_.datapath(), plan_.layout, plan_.lcores, ports_->near(),
                                                        stage_maker()));
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
    workers_.emplace(plan_.lcores);
    started_s_ = report::monotonic_seconds();
    return launch_roles(plan_, *forwarder_, far_workers_, *workers_);
  }

  /// Without a rate the far side keeps as much on its way as fits, so that nothing is lost; with one it sends at that,
  /// and what is too much is the port's to drop.
  void make_far_side() {
    traffic::TrafficGroup::Options options = far_options(config_, *ports_);
    if (is_given(loaded_, "traffic.rate") && !transmits()) options.window = 0;
    if (!transmits()) options.arrived = [this] { return arrived(); };
    far_ = std::make_unique<traffic::TrafficGroup>(*traffic_, options);
    far_workers_ = far_workers(*far_, plan_, *ports_);
  }

  /// Packets that the consumer has taken or refused.
  [[nodiscard]] std::uint64_t arrived() const {
    std::uint64_t packets = paths_.delivered().packets;
    for (const auto& path : forwarder_->paths()) packets += path->sent.drops.total();
    return packets;
  }

  report::LiveResult supervise() {
    const auto done = [this] {
      stop_if_done(plan_, config_.run.packets, far_.get(), *forwarder_, ports_->ports());
      if (forwarder_->failure()) give_up(far_.get(), *forwarder_);
      return !workers_->running();
    };
    return report::run_live(config_.run,
                            {.started_s = started_s_,
                             .sample = [this] { return totals(); },
                             .progress = [this] { return paths_.delivered(); },
                             .done = done,
                             .stop = [this] { far_ ? far_->stop() : forwarder_->stop(); }},
                            runtime::StopOnSignal::requested());
  }

  [[nodiscard]] RunTotals totals() const {
    return ingest_run_totals({.forwarder = *forwarder_,
                              .paths = paths_,
                              .far = far_.get(),
                              .near_port = ports_->ports().front(),
                              .transmits = transmits(),
                              .verifies = consumer_ == ConsumerKind::verify});
  }

  int report(const report::LiveResult& live) {
    report::RunReport report = report_of(loaded_, live, plan_.lcores, *eal_, ports_->ports());
    report.totals = totals();
    const std::span<const port::Port> ports = ports_->ports();
    const std::span<const port::Port> near = config_.forward.loopback ? ports.first(1) : ports;
    std::optional<Error> failure = forwarder_->failure();
    const Result<std::optional<ingest::FrameTotals>> frames = paths_.end_frames();
    if (!frames && !failure) failure = frames.error();
    report.ingest = ingest_report(*forwarder_, paths_, near, report.totals);
    report.ingest->consumer = config_.ingest.frame.empty() ? name(consumer_) : "frames";
    if (frames && *frames) add_frames(*report.ingest, **frames);
    report.ingest->engine = name(config_.forward.engine);
    report.ingest->memory_bytes += ports_->gpu_memory().value;
    if (on_gpu()) report.gpu = gpu_totals(config_.forward, report.ingest->memory_bytes);
    report.notes.insert(report.notes.end(), link_notes_.begin(), link_notes_.end());
    if (consumer_ == ConsumerKind::verify) {
      report.notes.push_back("the consumer runs on several packets at a time, so reordered ones are not counted");
    }
    if (consumer_ == ConsumerKind::verify && !far_ && !static_wires_) {
      report.notes.push_back("missing packets are not known here: they are what was sent elsewhere, less what came");
    }
    for (const port::Port& port : near) {
      for (const auto& [counter, value] : port.extended_counters()) {
        if (counter.starts_with("fault_") && value != 0) report.ingest->faults.emplace_back(counter, value);
      }
    }
    if (far_) {
      for (const auto& [counter, value] : ports[1].extended_counters()) {
        if (counter.starts_with("fault_") && value != 0) report.ingest->faults.emplace_back(counter, value);
      }
    }
    if (failure) report.notes.push_back(failure->message());
    print(report, config_.run);
    if (failure) {
      spdlog::error("{}", failure->message());
      return static_cast<int>(failure->kind);
    }
    return report::exit_code(report, live.interrupted);
  }

  /// Streams of a `generate` that runs elsewhere: one per queue that it sends on.
  static constexpr std::uint16_t kAnyStream = 32;

  runtime::StopOnSignal on_signal_;  ///< goes last: an interrupt cuts short neither set-up nor clean-up
  const config::LoadedConfig& loaded_;
  config::Config config_;
  ConsumerKind consumer_ = ConsumerKind::automatic;
  bool static_wires_ = false;  ///< which bring the same buffers again and again
  ForwardPlan plan_;
  std::optional<traffic::TrafficPlan> traffic_;
  std::vector<std::string> link_notes_;  ///< of links that were down when the run began

  std::optional<runtime::SetupStep> leaving_;  ///< names a clean-up that hangs, from the destructor on
  std::optional<runtime::Eal> eal_;
  std::optional<forward::ForwardPorts> ports_;
  ingest::IngestPaths paths_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  std::unique_ptr<traffic::TrafficGroup> far_;
  FarWorkers far_workers_;
  std::optional<runtime::Workers> workers_;
  double started_s_ = 0;
};

}  // namespace

Result<int> run_ingest(const config::LoadedConfig& loaded) { return IngestCommand(loaded).run(); }

}  // namespace warpline
