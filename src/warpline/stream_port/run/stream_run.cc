// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/run/stream_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "warpline/runtime/port_spec.h"

namespace warpline::stream_port {
namespace {

/// Adds the workers of a port. The lanes are near their queues.
void add_requests(std::vector<runtime::WorkerRequest>& requests, int node, std::uint16_t queues, bool lanes) {
  const auto first = static_cast<int>(requests.size());
  for (std::uint16_t i = 0; i < queues; ++i) {
    requests.push_back({.name = fmt::format("stream {}", i), .queues = fmt::format("queue {}", i), .node = node});
  }
  for (std::uint16_t i = 0; lanes && i < queues; ++i) {
    requests.push_back({.name = fmt::format("lane {}", i), .near = first + i});
  }
}

/// Returns where the threads of lanes run, whose workers are [first, end) of the plan.
std::vector<handoff::LanePlacement> placements(const runtime::LcorePlan& plan, std::size_t first, std::size_t end) {
  std::vector<handoff::LanePlacement> threads;
  for (std::size_t i = first; i < end; ++i) {
    threads.push_back({static_cast<unsigned>(plan.workers[i].cpu.id), plan.workers[i].gives_way});
  }
  return threads;
}

/// Returns the connections of one of `queues` queues; the first queues have the remainder.
std::uint32_t share_of(std::uint32_t connections, std::size_t queue, std::size_t queues) {
  const auto count = static_cast<std::uint32_t>(queues);
  return connections / count + (queue < connections % count ? 1 : 0);
}

Result<void> check_run(const StreamRunSettings& settings) {
  if (!settings.receive && !settings.send) {
    return usage_error("streams", "there is no port", "set StreamRunSettings::receive or send");
  }
  if (settings.receive) WARPLINE_CHECK(runtime::check_port_spec(settings.receive->port.spec));
  if (!settings.send) return {};
  const SendSettings& send = *settings.send;
  if (send.sources.empty()) {
    return usage_error("streams to be sent", "there is no source of bytes", "set SendSettings::sources");
  }
  if (share_of(send.plan.connections, 0, send.sources.size()) > send.sender.connections) {
    return usage_error(fmt::format("{} connections at once", send.plan.connections),
                       "a queue has fewer than its share of them", "increase SenderSettings::connections");
  }
  return runtime::check_port_spec(send.port.spec);
}

/// Returns the nanoseconds between the earliest begin and the latest end, in seconds. A begin of 0 has not happened.
class Span {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin == 0) return;
    first_ = std::min(first_, begin);
    last_ = std::max(last_, end);
  }
  [[nodiscard]] double seconds() const { return last_ == 0 ? 0 : static_cast<double>(last_ - first_) / 1e9; }

 private:
  std::uint64_t first_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last_ = 0;
};

}  // namespace

std::vector<runtime::WorkerRequest> stream_requests(int node, std::uint16_t queues, bool lanes) {
  std::vector<runtime::WorkerRequest> requests;
  add_requests(requests, node, queues, lanes);
  return requests;
}

Result<std::unique_ptr<StreamRun>> StreamRun::open(const StreamRunSettings& settings) {
  WARPLINE_CHECK(check_run(settings));
  std::vector<runtime::WorkerRequest> requests;
  std::vector<std::string> specs;
  Bytes memory{};
  if (const auto& receive = settings.receive) {
    add_requests(requests, runtime::port_node(receive->port.spec), receive->queues,
                 receive->lanes.engine == EngineKind::thread);
    specs.push_back(receive->port.spec);
  }
  std::unique_ptr<StreamRun> run(new StreamRun);
  run->first_sender_ = requests.size();
  if (const auto& send = settings.send) {
    add_requests(requests, runtime::port_node(send->port.spec), static_cast<std::uint16_t>(send->sources.size()),
                 send->payload.engine == EngineKind::thread);
    specs.push_back(send->port.spec);
  }
  WARPLINE_TRY(run->lcores_, runtime::place_workers(settings.runtime, requests));
  const runtime::LcorePlan& plan = run->lcores_;
  LaneSetup lanes;
  if (const auto& receive = settings.receive) {
    LaneChoice choice = receive->lanes;
    choice.threads = placements(plan, receive->queues, run->first_sender_);
    WARPLINE_TRY(lanes, lane_setup(std::move(choice)));
    memory.value += StreamPort::memory(receive->port, settings.pool, receive->queues, lanes).value;
  }
  PayloadSetup payload;
  if (const auto& send = settings.send) {
    PayloadChoice choice = send->payload;
    choice.threads = placements(plan, run->first_sender_ + send->sources.size(), plan.workers.size());
    WARPLINE_TRY(payload, payload_setup(std::move(choice)));
    const auto queues = static_cast<std::uint16_t>(send->sources.size());
    memory.value += SendPort::memory(send->port, settings.pool, payload, queues).value;
  }
  WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start_planned(settings.runtime, plan, specs, memory));
  run->eal_.emplace(std::move(eal));
  WARPLINE_CHECK(run->open_ports(settings, lanes, payload));
  return run;
}

Result<void> StreamRun::open_ports(const StreamRunSettings& settings, const LaneSetup& lanes,
                                   const PayloadSetup& payload) {
  if (const auto& receive = settings.receive) {
    WARPLINE_TRY(receiving_, StreamPort::open(receive->port, settings.pool, receive->receiver, clock_.now(),
                                              std::nullopt, receive->queues, receive->vlan, lanes));
  }
  if (const auto& send = settings.send) {
    plan_ = send->plan;
    sources_ = send->sources;
    next_hop_ = send->next_hop;
    const std::vector<const stream::PayloadSource*> sources(sources_.begin(), sources_.end());
    WARPLINE_TRY(sending_, SendPort::open(send->port, settings.pool, send->sender, sources, next_hop_, clock_.now(),
                                          std::nullopt, send->vlan, payload));
  }
  return {};
}

StreamRun::~StreamRun() {
  end();
  if (eal_) runtime::Eal::begin_end();
}

Result<void> StreamRun::launch(const std::vector<StreamApplication*>& applications) {
  const std::size_t queues = receiving_ ? receiving_->queues() : 0;
  if (applications.size() != queues) {
    return usage_error(fmt::format("{} applications for {} queues", applications.size(), queues),
                       "each queue that receives has one", "pass one per queue");
  }
  for (std::size_t i = 0; i < queues; ++i) {
    receivers_.push_back(
        std::make_unique<StreamWorker>(receiving_->queue(i), *applications[i], clock_, stop_, gives_way(i)));
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    SendPlan plan = plan_;
    plan.connections = share_of(plan_.connections, i, sources_.size());
    senders_.push_back(std::make_unique<SendWorker>(sending_->queue(i), *sources_[i], plan, clock_, stop_,
                                                    gives_way(first_sender_ + i)));
  }
  started_ = clock_.now();
  workers_.emplace(lcores_);
  const Result<void> launched = launch_workers();
  if (!launched) end();
  return launched;
}

Result<void> StreamRun::launch_workers() {
  for (std::size_t i = 0; i < receivers_.size(); ++i) {
    WARPLINE_CHECK(workers_->launch(i, [worker = receivers_[i].get()] { worker->run(); }));
  }
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    WARPLINE_CHECK(workers_->launch(first_sender_ + i, [worker = senders_[i].get()] { worker->run(); }));
  }
  return {};
}

Result<void> StreamRun::run(const std::atomic<bool>& stop) {
  constexpr auto kPeriod = std::chrono::milliseconds(1);
  while (!stop.load(std::memory_order_relaxed) && !over()) std::this_thread::sleep_for(kPeriod);
  end();
  if (std::optional<Error> failed = failure()) return *std::move(failed);
  return {};
}

bool StreamRun::over() const {
  const auto done = [](const auto& worker) { return worker->done(); };
  const auto stuck = [](const auto& worker) { return worker->done() && (worker->unresolved() || worker->failed()); };
  if (std::ranges::any_of(receivers_, done)) return true;
  return !senders_.empty() && (std::ranges::all_of(senders_, done) || std::ranges::any_of(senders_, stuck));
}

void StreamRun::finish_sending() {
  for (const auto& worker : senders_) worker->finish();
}

void StreamRun::end() {
  stop_.store(true, std::memory_order_relaxed);
  if (workers_) workers_->wait();
}

std::optional<Error> StreamRun::failure() const {
  for (const auto& worker : receivers_) {
    if (worker->failure()) return worker->failure();
  }
  for (const auto& worker : senders_) {
    if (std::optional<Error> failed = worker->failure()) return failed;
  }
  if (std::ranges::any_of(senders_, [](const auto& worker) { return worker->unresolved(); })) {
    return Error{ErrorKind::peer, fmt::format("cannot reach {}", to_string(next_hop_)), "it does not say where it is",
                 "check the address, the cable, and --gateway"};
  }
  return std::nullopt;
}

double StreamRun::seconds() const { return static_cast<double>(clock_.now().value - started_.value) / 1e9; }

double StreamRun::receiving_s() const {
  Span span;
  for (const auto& worker : receivers_) span.add(worker->first_byte(), worker->last_byte());
  return span.seconds();
}

double StreamRun::sending_s() const {
  Span span;
  for (const auto& worker : senders_) span.add(worker->first_syn(), worker->last_acknowledgement());
  return span.seconds();
}

}  // namespace warpline::stream_port
