// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "sim/allocations.h"
#include "sim/scenario.h"
#include "sim/toy_protection.h"

namespace warpline::sim {
namespace {

constexpr std::int64_t kLookStep = 1'000'000;  // between looks at who is done
constexpr std::int64_t kDrain = 20'000'000;    // for what is still on its way when all is done

/// A scenario as it runs: owner of everything in it.
class Run final : public Actor {
 public:
  Run(const Scenario& scenario, bool trace)
      : scenario_(scenario),
        trace_(trace),
        network_(events_, scenario.network),
        ledger_(scenario.network.hosts),
        allocations_(NoAllocations::violations()) {
    Random seeds(scenario.seed);
    for (std::uint32_t i = 0; i < scenario.network.hosts; ++i) {
      HostConfig config = scenario.hosts[i];
      if (scenario.authenticated) {
        protections_.push_back(std::make_unique<ToyProtection>(config.endpoint.max_sessions));
        config.endpoint.protection = protections_.back().get();
      }
      applications_.push_back(std::make_unique<RpcApplication>(scenario.plans[i], ledger_, calls_, seeds.next()));
      hosts_.push_back(std::make_unique<Host>(network_, i, config, *applications_.back(), seeds.next(), trace_));
      restarted_.push_back(false);
    }
    for (std::size_t i = 0; i < scenario.mishaps.size(); ++i) events_.at(scenario.mishaps[i].at, *this, i);
  }

  Outcome run();
  void act(std::uint64_t mishap) override;

 private:
  [[nodiscard]] bool step_until_all(bool (*ready)(const Host&, const RpcApplication&), std::int64_t end);
  void check_hosts();

  const Scenario& scenario_;
  Trace trace_;
  EventQueue events_;
  Network network_;
  Ledger ledger_;
  StreamLedger calls_;
  std::uint64_t allocations_;
  std::vector<std::unique_ptr<ToyProtection>> protections_;
  std::vector<std::unique_ptr<RpcApplication>> applications_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<bool> restarted_;
  std::vector<message::EndpointFacts> fresh_;  ///< before anything happened
};

void Run::act(std::uint64_t index) {
  const Mishap& mishap = scenario_.mishaps[index];
  Host& host = *hosts_[mishap.host];
  switch (mishap.kind) {
    case Mishap::Kind::pause:
      return host.pause_until(events_.now() + mishap.nanos);
    case Mishap::Kind::restart:
      restarted_[mishap.host] = true;
      return host.restart_at(events_.now() + mishap.nanos);
    case Mishap::Kind::clock_step:
      trace_(events_.now(), "host {}: clock steps by {} us", mishap.host, mishap.nanos / 1000);
      host.step_clock(mishap.nanos);
      return host.schedule_loop(events_.now());
    case Mishap::Kind::drain:
      return host.drain(mishap.nanos);
    case Mishap::Kind::mtu:
      trace_(events_.now(), "host {} is reached by {} B", mishap.host, mishap.bytes);
      return network_.downlink(mishap.host).set_datagram_bytes(mishap.bytes);
    case Mishap::Kind::move:
      return host.move(mishap.other_address);
  }
}

bool Run::step_until_all(bool (*ready)(const Host&, const RpcApplication&), std::int64_t end) {
  while (events_.now() < end) {
    events_.run_until(events_.now() + kLookStep);
    bool all = true;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      all = all && hosts_[i]->up() && ready(*hosts_[i], *applications_[i]);
    if (all) return true;
  }
  return false;
}

Outcome Run::run() {
  for (const auto& host : hosts_) {
    host->start();
    fresh_.push_back(host->fresh());
  }
  if (!step_until_all([](const Host&, const RpcApplication& application) { return application.done(); },
                      scenario_.longest)) {
    ledger_.fail(fmt::format("no end within {} s", scenario_.longest / 1'000'000'000));
    for (const auto& application : applications_) ledger_.fail(application->state());
  } else {
    const auto mishaps_end =
        std::accumulate(scenario_.mishaps.begin(), scenario_.mishaps.end(), std::int64_t{0},
                        [](std::int64_t end, const Mishap& m) { return std::max(end, m.at + m.nanos); });
    events_.run_until(std::max(events_.now(), mishaps_end) + kDrain);
    for (const auto& application : applications_) application->close();
    const std::int64_t end = events_.now() + 100 * scenario_.hosts[0].endpoint.keepalive.value;
    if (!step_until_all(
            [](const Host&, const RpcApplication& application) { return application.living_sessions() == 0; }, end)) {
      for (const auto& application : applications_) ledger_.fail("sessions outlive their end: " + application->state());
    }
    for (const auto& application : applications_) application->forget();
    // Sessions whose peers never showed that they are there are half open for so long.
    std::int64_t half_open = 0;
    for (const HostConfig& host : scenario_.hosts) half_open = std::max(half_open, host.endpoint.connect_timeout.value);
    events_.run_until(events_.now() + half_open + kDrain);
    check_hosts();
  }
  Ledger::Excuses excuses{.peers_lost = scenario_.sessions_may_end(), .in_time = scenario_.drains_in_time()};
  for (const auto& host : hosts_) {
    excuses.drained.push_back(host->counters().drains != 0);
    excuses.deaf.push_back(host->counters().ring_full > host->datagrams_received());
  }
  ledger_.finish(excuses);
  for (std::uint32_t i = 0; i < calls_.size(); ++i) {
    const SentStream& call = calls_[i];
    check_ended(call, i, excuses.may_lose(call.from, call.to), excuses.any_drained(call.from, call.to), excuses.in_time,
                ledger_);
  }
  std::uint64_t loops = 0;
  std::uint64_t idle = 0;
  std::uint64_t drained = 0;
  const auto answered = std::ranges::count_if(calls_, [](const SentStream& call) {
    return call.ended != 0 && call.result.status == message::MessageStatus::ok;
  });
  for (const auto& host : hosts_) {
    loops += host->counters().loops;
    idle += host->counters().idle_deadlines;
    drained += host->counters().drains;
  }
  return {ledger_.failures(), ledger_.failure_count(),
          fmt::format("{}; {} calls in pieces, {} of them answered; {} drained; {} loops of hosts, {} of them idle",
                      ledger_.summary(), calls_.size(), answered, drained, loops, idle),
          static_cast<double>(events_.now()) / 1e9};
}

void Run::check_hosts() {
  for (const auto& application : applications_) application->check();
  if (const std::uint64_t count = NoAllocations::violations() - allocations_; count > 0) {
    ledger_.fail(fmt::format("{} allocations inside of endpoints", count));
  }
  if (network_.pool().taken() != 0) ledger_.fail(fmt::format("{} packets never arrived", network_.pool().taken()));
  for (const auto& protection : protections_) {
    if (protection->misused() > 0) ledger_.fail(fmt::format("{} packets sealed wrongly", protection->misused()));
  }
  for (const auto& host : hosts_) {
    const message::EndpointCounters& counters = host->endpoint().counters();
    std::uint64_t seen = counters.packets_in.get();
    for (const Counter& drop : counters.drops) seen += drop.get();
    seen -= counters.fragments_dropped.get() + counters.packets_behind.get();
    if (!restarted_[host->index()] && host->counters().drains == 0 && seen != host->datagrams_received()) {
      std::string drops;
      for (std::size_t i = 0; i < message::kMessageDrops; ++i) {
        const auto reason = static_cast<message::MessageDrop>(i);
        if (counters.dropped(reason) != 0) drops += fmt::format(" {} {}", counters.dropped(reason), name(reason));
      }
      ledger_.fail(fmt::format("host {}: {} datagrams received, {} counted, of these dropped:{}", host->index(),
                               host->datagrams_received(), seen, drops));
    }
    if (const message::EndpointFacts left = host->endpoint().facts(); left != fresh_[host->index()]) {
      const message::EndpointFacts& fresh = fresh_[host->index()];
      ledger_.fail(fmt::format(
          "host {} keeps {} sessions, {} messages, {} places for sent packets, {} B of receive memory", host->index(),
          fresh.free_sessions - left.free_sessions, fresh.free_messages - left.free_messages,
          fresh.free_sent_packets - left.free_sent_packets, fresh.free_receive_bytes - left.free_receive_bytes));
    }
    if (host->counters().idle_deadlines > 1000 + host->counters().loops / 4) {
      ledger_.fail(fmt::format("host {}: {} of {} loops were asked for and had nothing to do", host->index(),
                               host->counters().idle_deadlines, host->counters().loops));
    }
  }
}

}  // namespace

Outcome run(const Scenario& scenario, bool trace) { return Run(scenario, trace).run(); }

}  // namespace warpline::sim
