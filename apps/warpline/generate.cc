// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "frame/run_frame.h"
#include "traffic_layout.h"
#include "warpline/datapath/run_inputs.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/port/link_wait.h"
#include "warpline/port/port.h"
#include "warpline/report/live.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline {
namespace {

/// One `generate` run. Worker w serves port w / queues, queue w % queues. Members are destroyed in reverse: lcores end
/// before the workers that they run, ports close before their pools.
class GenerateRun : RunFrame {
 public:
  explicit GenerateRun(const config::LoadedConfig& loaded) : RunFrame(loaded) {}
  GenerateRun(const GenerateRun&) = delete;
  GenerateRun& operator=(const GenerateRun&) = delete;
  /// Workers that were launched before an error are ended.
  ~GenerateRun() {
    begin_end();
    if (group_) group_->stop();
  }

  Result<int> run() {
    WARPLINE_CHECK(plan());
    WARPLINE_CHECK(start_eal(inputs_.specs, memory()));
    WARPLINE_CHECK(open_ports());
    report::announce(notes(ports_));
    WARPLINE_CHECK(check_links());
    make_workers();
    reload_by([this](const config::Config& next) -> Result<std::string> {
      group_->set_rate(traffic::share_of(next.traffic.rate, queues()));
      return std::string();
    });
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      report::add(snapshot, totals());
      report::add(snapshot, ports_);
    }));
    WARPLINE_CHECK(launch(workers_, [this](std::size_t worker) { traffic_[worker]->run(); }));
    const report::LiveResult live = report::run_live(config_.run,
                                                     {.started_s = started_s_,
                                                      .sample = [this] { return totals(); },
                                                      .progress = [this] { return group_->through(); },
                                                      .done = [this] { return done(); },
                                                      .stop = [this] { group_->stop(); }},
                                                     runtime::StopOnSignal::requested());
    workers_->wait();
    return report(live);
  }

 private:
  /// All that can be decided, and refused, before DPDK starts.
  Result<void> plan() {
    WARPLINE_TRY(traffic::TrafficPlan traffic, traffic::TrafficPlan::make(config_.traffic, config_.run.seed));
    WARPLINE_TRY(inputs_, datapath::look_at_inputs(config_.ports));
    const std::vector<runtime::WorkerRequest> requests = traffic_requests(inputs_.nodes, queues());
    WARPLINE_CHECK(place(requests));
    group_ = std::make_unique<traffic::TrafficGroup>(
        std::move(traffic),
        traffic::TrafficGroup::Options{.workers = static_cast<std::uint16_t>(requests.size()),
                                       .macs = traffic::MacRule::either,
                                       .packets = config_.run.packets,
                                       .warmup = config_.run.warmup,
                                       .sends = config_.traffic.role != traffic::TrafficRole::receive,
                                       .receives = config_.traffic.role != traffic::TrafficRole::transmit,
                                       .burst = config_.traffic.burst,
                                       .rate = traffic::share_of(config_.traffic.rate, queues()),
                                       .drain = config_.traffic.drain});
    return {};
  }

  [[nodiscard]] std::uint16_t queues() const { return config_.traffic.queues; }

  /// Buffers of one port: what it receives and what it sends come from one pool.
  [[nodiscard]] std::uint32_t buffers(const port::PortSettings& port) const {
    if (config_.pool.size != 0) return config_.pool.size;
    return memory::pool_size({.rx_descriptors = std::uint32_t{port.rx_ring} * queues(),
                              .tx_descriptors = std::uint32_t{port.tx_ring} * queues(),
                              .in_flight = 2U * config_.traffic.burst * queues(),
                              .lcores = queues() + 1U,
                              .cache = config_.pool.cache});
  }

  [[nodiscard]] std::uint32_t room(const port::PortSettings& port) const {
    return config_.pool.data_room != 0 ? config_.pool.data_room : memory::data_room(port.mtu);
  }

  [[nodiscard]] Bytes memory() const {
    constexpr std::uint64_t kRingsAndQueues = 16U << 20;
    std::uint64_t bytes = kRingsAndQueues;
    for (const port::PortSettings& port : config_.ports) {
      bytes += memory::pool_bytes(buffers(with_longest_rings(port)), room(port)).value;
    }
    return Bytes{bytes};
  }

  Result<void> open_ports() {
    for (std::size_t i = 0; i < config_.ports.size(); ++i) {
      const port::PortSettings& port_config = config_.ports[i];
      WARPLINE_TRY(port::Port port, port::Port::open(port_config.spec));
      const runtime::SetupStep step(fmt::format("setting up port {}", port.name()));
      WARPLINE_CHECK(port.configure(port_config, {.rx = queues(), .tx = queues(), .one_pool = true}));
      WARPLINE_TRY(memory::PacketPool pool,
                   memory::PacketPool::make(fmt::format("port{}", i), buffers(port.settings_in_force()),
                                            config_.pool.cache, room(port_config), port.node()));
      pools_.push_back(std::move(pool));
      WARPLINE_CHECK(traffic::Generator::check_pool(group_->plan(), *pools_.back().get()));
      WARPLINE_CHECK(port.attach(pools_.back().get()));
      WARPLINE_CHECK(port.start());
      ports_.push_back(std::move(port));
    }
    return {};
  }

  /// What is sent without a link would count as transmitted, and be nowhere.
  Result<void> check_links() {
    const std::vector<std::string> down = port::wait_for_links(ports_, runtime::StopOnSignal::requested());
    if (down.empty()) return {};
    if (!runtime::StopOnSignal::requested()) {
      return environment_error(fmt::format("port {}", down.front()), "its link does not come up",
                               "check the cable, and bring the other end up first");
    }
    group_->stop();
    return {};
  }

  void make_workers() {
    std::vector<port::Announcer*> announcers;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const std::vector<InterfaceAddress>& addresses = config_.ports[i].addresses;
      std::optional<packet::Responder>& responder = responders_.emplace_back();
      announcers.push_back(
          &announce_by(std::make_unique<port::Announcer>(ports_[i], ports_[i].mac(), addresses, *pools_[i].get())));
      if (addresses.empty()) continue;
      responder.emplace(ports_[i].mac(), addresses.front(),
                        packet::ResponderSettings{.watch = ports_[i].watches().data()});
    }
    for (std::uint16_t i = 0; i < lcores_.workers.size(); ++i) {
      const std::size_t port = i / queues();
      traffic_.push_back(std::make_unique<traffic::TrafficWorker>(
          *group_,
          traffic::TrafficWorker::Place{.number = i,
                                        .port = ports_[port].id(),
                                        .queue = static_cast<std::uint16_t>(i % queues()),
                                        .yields = lcores_.workers[i].gives_way,
                                        .responder = responders_[port] ? &*responders_[port] : nullptr,
                                        .announcer = i % queues() == 0 ? announcers[port] : nullptr},
          *pools_[port].get()));
    }
  }

  [[nodiscard]] bool done() {
    tend();
    if (runtime::StopOnSignal::requested()) group_->interrupt();
    return !workers_->running();
  }

  [[nodiscard]] RunTotals totals() const {
    RunTotals totals;
    group_->add_to(totals);
    Histogram latency;
    group_->merge_latency(latency);
    // Stamps are of the sender's clock.
    if (config_.traffic.role == traffic::TrafficRole::both) totals.latency = LatencyTotals::of(latency);
    return totals;
  }

  int report(const report::LiveResult& live) {
    report::RunReport report = begin_report(live, ports_);
    report.totals = totals();
    for (std::uint16_t i = 0; i < lcores_.workers.size(); ++i) {
      traffic::QueueTotals queue = group_->queue_totals(i);
      queue.port = ports_[i / queues()].name();
      queue.queue = static_cast<std::uint16_t>(i % queues());
      report.queues.push_back(std::move(queue));
    }
    // What comes back is always checked, but there may be nobody who sends it: only --verify says that it must come.
    const bool must_return = config_.run.verify && report.totals.tx.packets != 0;
    if (!config_.run.verify && report.totals.rx.packets == 0) report.totals.verify.reset();
    print(report);
    if (!config_.run.verify) report.totals.verify.reset();
    if (must_return && report.totals.rx.packets == 0) {
      spdlog::error("nothing came back: the peer is gone or does not forward; start it, or leave --verify out");
      return static_cast<int>(ErrorKind::peer);
    }
    return report::exit_code(report, live.interrupted);
  }

  datapath::RunInputs inputs_;
  std::vector<memory::PacketPool> pools_;
  std::vector<port::Port> ports_;
  std::vector<std::optional<packet::Responder>> responders_;  ///< of each port that has an address
  std::unique_ptr<traffic::TrafficGroup> group_;
  std::vector<std::unique_ptr<traffic::TrafficWorker>> traffic_;
  std::optional<runtime::Workers> workers_;
};

}  // namespace

Result<int> run_generate(const config::LoadedConfig& loaded) { return GenerateRun(loaded).run(); }

}  // namespace warpline
