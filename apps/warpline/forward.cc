// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "measure/forward_totals.h"
#include "measure/generator.h"
#include "measure/live.h"
#include "measure/run_end.h"
#include "measure/send_frames.h"
#include "measure/traffic_worker.h"
#include "memory/packet_pool.h"
#include "pipeline/forwarder.h"
#include "runtime/eal.h"
#include "runtime/pcap_file.h"
#include "runtime/port.h"
#include "runtime/port_spec.h"
#include "runtime/stop.h"
#include "runtime/workers.h"

namespace warpline {
namespace {

/// Packets that a port can ever receive because it replays a file once; 0 for all other ports.
Result<std::uint64_t> recorded_packets(const std::string& text) {
  WARPLINE_TRY(const PortSpec spec, parse_port_spec(text));
  const auto file = spec.arguments.find("rx_pcap");
  if (spec.driver != "net_pcap" || file == spec.arguments.end()) return std::uint64_t{0};
  const auto endless = spec.arguments.find("infinite_rx");
  if (endless != spec.arguments.end() && endless->second != "0") return std::uint64_t{0};
  WARPLINE_TRY(const PcapFacts facts, check_pcap(file->second));
  return facts.packets;
}

/// One `forward` run, from the command line to the report. Members are destroyed in reverse: lcores end before the
/// stages that they run, ports close before their pools, the EAL goes last.
class ForwardRun {
 public:
  explicit ForwardRun(const LoadedConfig& loaded) : loaded_(loaded), config_(loaded.config) {}
  ForwardRun(const ForwardRun&) = delete;
  ForwardRun& operator=(const ForwardRun&) = delete;
  /// Workers that were launched before an error end by themselves.
  ~ForwardRun() {
    if (far_) far_->stop();
    if (forwarder_) forwarder_->stop();
  }

  Result<int> run() {
    WARPLINE_CHECK(plan());
    WARPLINE_TRY(Eal eal, Eal::start(config_.runtime, plan_, specs_, memory()));
    eal_.emplace(std::move(eal));
    if (config_.forward.loopback) {
      WARPLINE_CHECK(open_loopback());
    } else {
      WARPLINE_CHECK(open_ports());
      if (config_.forward.tx_first != 0) WARPLINE_CHECK(send_first());
    }
    announce(notes_of(plan_, *eal_));
    WARPLINE_CHECK(launch());
    const LiveResult live = supervise();
    workers_->wait();
    forwarder_->finish();
    return report(live);
  }

 private:
  /// All that can be decided, and refused, before DPDK starts.
  Result<void> plan() {
    std::vector<int> nodes;
    if (config_.forward.loopback) nodes = {kAnyNode};
    if (config_.forward.loopback || config_.forward.tx_first != 0) {
      WARPLINE_TRY(TrafficPlan traffic, TrafficPlan::make(config_.traffic, config_.run.seed));
      traffic_.emplace(std::move(traffic));
    }
    finite_input_ = !config_.ports.empty();
    std::uint64_t recorded = 0;
    for (const PortConfig& port : config_.ports) {
      WARPLINE_CHECK(check_port_spec(port.spec));
      WARPLINE_TRY(const std::uint64_t packets, recorded_packets(port.spec));
      finite_input_ = finite_input_ && packets != 0;
      recorded += packets;
      specs_.push_back(port.spec);
      nodes.push_back(port_node(port.spec));
    }
    if (finite_input_ && (config_.run.packets == 0 || config_.run.packets > recorded)) config_.run.packets = recorded;
    WARPLINE_TRY(const Topology topology, Topology::of_machine());
    layout_ = lay_out_forward(config_, nodes, topology.cpus.size());
    WARPLINE_TRY(plan_, plan_lcores(topology, layout_.requests, {config_.runtime.lcores, config_.runtime.share_cores}));
    return {};
  }

  [[nodiscard]] std::uint16_t pipelines() const { return config_.forward.pipelines; }

  /// Frames of one queue pair that the far side keeps on their way: half of a ring, so that none ever overflows.
  [[nodiscard]] std::uint32_t window() const { return config_.port_defaults.rx_ring / 2; }

  /// Buffers for what `port` receives, wherever they can be.
  [[nodiscard]] std::uint32_t buffers(const PortConfig& port) const {
    if (config_.pool.size != 0) return config_.pool.size;
    const std::uint32_t bursts = config_.forward.ring_slots + 2U;
    PoolDemand demand{.rx_descriptors = std::uint32_t{port.rx_ring} * pipelines(),
                      .tx_descriptors = std::uint32_t{port.tx_ring} * pipelines(),
                      .in_flight = config_.forward.burst * bursts * pipelines(),
                      .lcores = static_cast<std::uint32_t>(layout_.roles.size()) + 1,
                      .cache = config_.pool.cache};
    if (config_.forward.loopback) demand.in_flight += (window() + config_.traffic.burst) * pipelines();
    demand.in_flight += config_.forward.tx_first;
    return pool_size(demand);
  }

  [[nodiscard]] std::uint32_t room(const PortConfig& port) const {
    return config_.pool.data_room != 0 ? config_.pool.data_room : data_room(port.mtu);
  }

  [[nodiscard]] Bytes memory() const {
    constexpr std::uint64_t kRingsAndQueues = 16U << 20;
    std::uint64_t bytes = kRingsAndQueues;
    const auto add = [&](const PortConfig& port) { bytes += pool_bytes(buffers(port), room(port)).value; };
    for (const PortConfig& port : config_.ports) add(port);
    if (config_.forward.loopback)
      bytes += 2 * pool_bytes(buffers(config_.port_defaults), room(config_.port_defaults)).value;
    return Bytes{bytes};
  }

  Result<void> open_ports() {
    for (std::size_t i = 0; i < config_.ports.size(); ++i) {
      const PortConfig& port_config = config_.ports[i];
      WARPLINE_TRY(Port port, Port::open(port_config.spec));
      WARPLINE_CHECK(port.configure(port_config, {.rx = pipelines(), .tx = layout_.tx_queues(config_, i)}));
      WARPLINE_CHECK(make_pool(fmt::format("port{}", i), port_config, port.node()));
      WARPLINE_CHECK(start(std::move(port), pools_.back()));
    }
    return {};
  }

  /// Two software NICs with a wire between them: the near port, which is forwarded on, and the far one. Whatever the
  /// far side has on its way fits a packet buffer, so nothing is lost for want of room.
  Result<void> open_loopback() {
    constexpr std::uint32_t kFrameOverhead = 64;
    const PortConfig& port_config = config_.port_defaults;
    const std::uint32_t buffer = window() * (traffic_->max_frame_bytes() + kFrameOverhead);
    for (const int port_index : {0, 1}) {
      WARPLINE_TRY(Port port, Port::open(fmt::format("net_vnic{},wire=net_vnic{},buffer={}", port_index, 1 - port_index,
                                                     std::bit_ceil(std::max(buffer, 1U << 20)))));
      WARPLINE_CHECK(port.configure(port_config, {.rx = pipelines(), .tx = pipelines(), .one_pool = true}));
      WARPLINE_CHECK(make_pool(port.name(), port_config, kAnyNode));
      WARPLINE_CHECK(start(std::move(port), pools_.back()));
    }
    return Generator::check_pool(*traffic_, *pools_.back().get());
  }

  Result<void> make_pool(const std::string& name, const PortConfig& port_config, int node) {
    WARPLINE_TRY(PacketPool pool,
                 PacketPool::make(name, buffers(port_config), config_.pool.cache, room(port_config), node));
    pools_.push_back(std::move(pool));
    return {};
  }

  Result<void> start(Port port, const PacketPool& pool) {
    WARPLINE_CHECK(port.attach(pool.get()));
    WARPLINE_CHECK(port.start());
    ports_.push_back(std::move(port));
    return {};
  }

  /// Sends --tx-first packets out of every port, so that something circulates on a wire that loops back.
  Result<void> send_first() {
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      WARPLINE_CHECK(Generator::check_pool(*traffic_, *pools_[i].get()));
      Generator generator(*traffic_, static_cast<std::uint16_t>(i), *pools_[i].get());
      first_ += send_frames(generator, {ports_[i].id(), 0}, config_.forward.tx_first);
    }
    return {};
  }

  Result<void> launch() {
    std::vector<ForwardPort> near;
    const std::size_t near_ports = config_.forward.loopback ? 1 : ports_.size();
    for (std::size_t i = 0; i < near_ports; ++i) {
      const PortConfig& port_config = config_.forward.loopback ? config_.port_defaults : config_.ports[i];
      near.push_back({ports_[i].id(), ports_[i].setup().mtu, ports_[i].mac(), port_config.address});
    }
    WARPLINE_TRY(forwarder_, Forwarder::create(config_, layout_, plan_, near));
    if (config_.forward.loopback) make_far_side();
    WARPLINE_CHECK(forwarder_->start());
    workers_.emplace(plan_);
    started_s_ = monotonic_seconds();
    for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
      if (layout_.roles[role].kind == RoleKind::engine) continue;
      if (layout_.roles[role].kind == RoleKind::far_side) {
        TrafficWorker& worker = *far_workers_[layout_.roles[role].streams.front()];
        WARPLINE_CHECK(workers_->launch(role, [&worker] { worker.run(); }));
      } else {
        WARPLINE_CHECK(workers_->launch(role, [this, role] { forwarder_->run(role); }));
      }
    }
    return {};
  }

  void make_far_side() {
    const MacRule macs = config_.forward.workload == WorkloadKind::mac_swap ? MacRule::swapped : MacRule::unchanged;
    far_ = std::make_unique<TrafficGroup>(*std::move(traffic_), TrafficGroup::Options{.workers = pipelines(),
                                                                                      .macs = macs,
                                                                                      .packets = config_.run.packets,
                                                                                      .warmup = config_.run.warmup,
                                                                                      .window = window(),
                                                                                      .burst = config_.traffic.burst,
                                                                                      .rate = config_.traffic.rate,
                                                                                      .drain = config_.traffic.drain});
    for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
      if (layout_.roles[role].kind != RoleKind::far_side) continue;
      const std::uint16_t queue = layout_.roles[role].streams.front();
      far_workers_.push_back(std::make_unique<TrafficWorker>(
          *far_,
          TrafficWorker::Place{
              .number = queue, .port = ports_[1].id(), .queue = queue, .yields = plan_.workers[role].shares_cpu},
          *pools_.back().get()));
    }
  }

  LiveResult supervise() {
    const auto stop = [this] { far_ ? far_->stop() : forwarder_->stop(); };
    const auto done = [this] {
      if (far_ ? far_->done() : input_used_up()) forwarder_->stop();
      return !workers_->running();
    };
    return run_live(config_.run,
                    {.started_s = started_s_,
                     .sample = [this] { return totals(); },
                     .progress = [this] { return forwarded(); },
                     .done = done,
                     .stop = stop},
                    StopOnSignal::requested());
  }

  [[nodiscard]] RunTotals totals() const {
    RunTotals totals = totals_of(*forwarder_, far_.get());
    if (config_.forward.tx_first != 0) {
      totals.generated = first_;
      totals.tx += first_;
    }
    if (!counts_bytes()) {
      totals.rx.bytes = device_bytes(&PortCounters::rx_packets, &PortCounters::rx_bytes);
      totals.tx.bytes = device_bytes(&PortCounters::tx_packets, &PortCounters::tx_bytes);
    }
    return totals;
  }

  /// What the rate is of.
  [[nodiscard]] Tally forwarded() const {
    Tally tally = forwarded_by(*forwarder_);
    if (!counts_bytes()) tally.bytes = device_bytes(&PortCounters::tx_packets, &PortCounters::tx_bytes);
    return tally;
  }

  [[nodiscard]] bool counts_bytes() const { return forwarder_->streams().front()->counts_bytes; }

  /// Where no stage weighs the packets, the devices say how many bytes they were; 0 if one of them does not count.
  [[nodiscard]] std::uint64_t device_bytes(std::uint64_t PortCounters::* packets,
                                           std::uint64_t PortCounters::* bytes) const {
    std::uint64_t sum = 0;
    for (const Port& port : ports_) {
      const PortCounters counters = port.counters();
      if (counters.*packets != 0 && counters.*bytes == 0) return 0;
      sum += counters.*bytes;
    }
    return sum;
  }

  /// All that may or can come is received, or was lost by the device.
  [[nodiscard]] bool input_used_up() const {
    if (config_.run.packets == 0) return false;
    std::uint64_t gone = forwarder_->received();
    if (gone < config_.run.packets && finite_input_) {
      for (const Port& port : ports_) {
        const PortCounters counters = port.counters();
        gone += counters.rx_errors + counters.rx_no_mbuf;
      }
    }
    return gone >= config_.run.packets;
  }

  int report(const LiveResult& live) {
    RunReport report;
    report.command = config_.command;
    report.config = loaded_.to_json();
    report.duration_s = live.duration_s;
    report.totals = totals();
    report.rate = live.rate;
    report.counted = counted_by(*forwarder_);
    for (const Port& port : ports_) add_port(report, port);
    add_plan(report, plan_);
    report.notes = notes_of(plan_, *eal_);
    if (const std::uint64_t wanted = std::uint64_t{config_.forward.tx_first} * ports_.size(); first_.packets < wanted) {
      report.notes.push_back(fmt::format("of {} packets to send first, the ports took {}", wanted, first_.packets));
    }
    print(report, config_.run);
    return exit_code(report, live.interrupted);
  }

  StopOnSignal on_signal_;  ///< goes last: an interrupt cuts short neither set-up nor clean-up
  const LoadedConfig& loaded_;
  Config config_;
  std::vector<std::string> specs_;
  bool finite_input_ = false;  ///< all ports replay files: what is lost never comes again
  ForwardLayout layout_;
  LcorePlan plan_;
  std::optional<TrafficPlan> traffic_;
  Tally first_;  ///< of --tx-first, sent

  std::optional<Eal> eal_;
  std::vector<PacketPool> pools_;
  std::vector<Port> ports_;
  std::unique_ptr<Forwarder> forwarder_;
  std::unique_ptr<TrafficGroup> far_;
  std::vector<std::unique_ptr<TrafficWorker>> far_workers_;
  std::optional<Workers> workers_;
  double started_s_ = 0;
};

}  // namespace

int run_forward(const LoadedConfig& loaded) {
  const Result<int> result = ForwardRun(loaded).run();
  if (result) return *result;
  spdlog::error("{}", result.error().message());
  return static_cast<int>(result.error().kind);
}

}  // namespace warpline
