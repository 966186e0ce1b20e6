// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "frame/forward_frame.h"
#include "ingest_totals/ingest_totals.h"
#include "warpline/base/time/clock.h"
#include "warpline/gpu/device.h"
#include "warpline/ingest/ingest_paths.h"
#include "warpline/ingest/static_frames.h"
#include "warpline/report/live.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"

namespace warpline {
namespace {

using ingest::ConsumerKind;
using ingest::IngestPath;

/// One `ingest` run, from the command line to the report.
class IngestCommand : ForwarderFrame {
 public:
  explicit IngestCommand(const config::LoadedConfig& loaded) : ForwarderFrame(loaded), paths_(config_.ingest) {}
  IngestCommand(const IngestCommand&) = delete;
  IngestCommand& operator=(const IngestCommand&) = delete;
  ~IngestCommand() { end(); }  // before the paths that the stages use are gone

  Result<int> run() {
    WARPLINE_CHECK(choose_engine());
    choose_consumer();
    WARPLINE_CHECK(plan_forwarding(config_.forward.loopback || verifies(),
                                   [this](forward::LoopbackSettings& far) { change_far(far); }));
    WARPLINE_CHECK(open());
    WARPLINE_CHECK(check_device_pool());
    static_wires_ = ingest::on_static_wires(config_.ports);
    if (static_wires_ && verifies()) ingest::fill_with_frames(opened_ports().pools(), *traffic_, ticks_now());
    WARPLINE_CHECK(prepare(stage_maker()));
    announce(ports());
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) { add_metrics(snapshot); }));
    WARPLINE_CHECK(launch_forwarding());
    return report(supervise({.totals = [this] { return totals(); }, .through = [this] { return paths_.delivered(); }}));
  }

 private:
  [[nodiscard]] bool transmits() const { return config_.ingest.transmit; }
  [[nodiscard]] bool injects() const { return !config_.ingest.faults.empty(); }
  [[nodiscard]] bool on_gpu() const { return runs_on_gpu(config_.forward.engine); }
  [[nodiscard]] bool verifies() const { return consumer_ == ConsumerKind::verify; }

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
    if (on_gpu() && loaded_.is_given("ingest.frame-timeout")) {
      return usage_error("cannot use --frame-timeout", "the GPU sums frames, and does nothing while no packets come",
                         "leave it out, or use -m host");
    }
    if (forward.engine == EngineKind::persistent && !loaded_.is_given("forward.ctas")) {
      forward.ctas = ingest.frame.empty() ? config::kPersistentCtas : 1;
    }
    datapath::DatapathSettings settings = config_.datapath();
    WARPLINE_CHECK(ingest::resolve(ingest, settings));
    forward = settings.forward;
    config_.pool = settings.pool;
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
    const Bytes taken = opened_ports().gpu_memory();
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

  /// Without a rate the far side keeps as much on its way as fits, so that nothing is lost; with one it sends at that,
  /// and what is too much is the port's to drop.
  [[nodiscard]] bool overruns() const { return loaded_.is_given("traffic.rate") && !transmits(); }

  void change_far(forward::LoopbackSettings& far) const {
    far.closed_loop = !overruns();
    if (!transmits()) far.taken = [this] { return paths_.delivered().packets; };
  }

  [[nodiscard]] RunTotals totals() const {
    return ingest_run_totals({.forwarder = forwarder(),
                              .paths = paths_,
                              .far = far(),
                              .near_port = ports().front(),
                              .transmits = transmits(),
                              .verifies = verifies()});
  }

  void add_metrics(metrics::Snapshot& snapshot) const {
    report::add(snapshot, totals());
    report::add(snapshot, ports());
    const ingest::IngestTotals from = paths_.totals(forwarder().paths());
    report::IngestReport so_far;
    for (const auto& path : forwarder().paths()) so_far.ring_full += path->received.ring_full.get();
    if (from.copies != 0) so_far.copies = {.count = from.copies, .bytes = from.copied_bytes};
    so_far.batching = from.batching;
    so_far.gpu = from.gpu;
    so_far.sending = from.sending;
    report::add(snapshot, so_far);
  }

  int report(const report::LiveResult& live) {
    report::RunReport report = begin_report(live, ports());
    report.totals = totals();
    std::optional<Error> failure = forwarder().failure();
    const Result<std::optional<ingest::FrameTotals>> frames = paths_.end_frames();
    if (!frames && !failure) failure = frames.error();
    report.queues = far_queues();
    report.ingest = ingest_report(forwarder(), paths_, near_ports(), report.totals);
    report.ingest->consumer = config_.ingest.frame.empty() ? name(consumer_) : "frames";
    if (frames && *frames) add_frames(*report.ingest, **frames);
    report.ingest->engine = name(config_.forward.engine);
    report.ingest->memory_bytes += opened_ports().gpu_memory().value;
    if (on_gpu()) report.gpu = gpu_totals(report.ingest->memory_bytes);
    if (verifies()) {
      report.notes.push_back("the consumer runs on several packets at a time, so reordered ones are not counted");
    }
    if (verifies() && far() == nullptr && !static_wires_) {
      report.notes.push_back("missing packets are not known here: they are what was sent elsewhere, less what came");
    }
    for (const port::Port& port : ports()) {
      for (const auto& [counter, value] : port.extended_counters()) {
        const bool of_fault = counter.starts_with("fault_") || (counter == "tx_queue_full" && injects());
        if (of_fault && value != 0) report.ingest->faults.emplace_back(counter, value);
      }
    }
    if (injects()) report.injected = report::InjectedFaults::of(report.ingest->faults);
    if (failure) report.notes.push_back(failure->message());
    print(report);
    if (failure) {
      spdlog::error("{}", failure->message());
      return static_cast<int>(failure->kind);
    }
    return report::exit_code(report, live.interrupted);
  }

  /// Streams of a `generate` that runs elsewhere: one per queue that it sends on.
  static constexpr std::uint16_t kAnyStream = 32;

  ConsumerKind consumer_ = ConsumerKind::automatic;
  bool static_wires_ = false;  ///< which bring the same buffers again and again
  ingest::IngestPaths paths_;
};

}  // namespace

Result<int> run_ingest(const config::LoadedConfig& loaded) { return IngestCommand(loaded).run(); }

}  // namespace warpline
