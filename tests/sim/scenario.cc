// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/chance.h"

namespace warpline::sim {
namespace {

template <typename T, std::size_t N>
T one_of(Random& random, const T (&values)[N]) {
  return values[random.below(N)];
}

Faults draw_faults(Random& random) {
  Faults faults;
  if (chance(random, 0.3)) return faults;
  if (chance(random, 0.7)) faults.loss = one_of(random, {0.0001, 0.001, 0.005, 0.01, 0.05, 0.2});
  if (chance(random, 0.4)) faults.duplicate = one_of(random, {0.001, 0.01, 0.1});
  if (chance(random, 0.4)) faults.corrupt = one_of(random, {0.001, 0.01, 0.05});
  if (chance(random, 0.5)) faults.reorder = one_of(random, {0.001, 0.05, 0.5});
  faults.reorder_by = between(random, 1'000, one_of(random, {5'000, 50'000, 500'000}));
  return faults;
}

message::EndpointConfig draw_endpoint(Random& random) {
  message::EndpointConfig config;
  config.max_sessions = 64;
  config.max_messages = one_of(random, {64U, 256U, 2048U});
  config.max_sent_packets = one_of(random, {1024U, 4096U});
  config.receive_bytes = one_of(random, {4U << 20, 16U << 20});
  config.receive_window = one_of(random, {64U << 10, 1U << 20});
  config.datagram_bytes = one_of(random, {512U, 1472U, 1472U, 8972U});
  config.reliability = chance(random, 0.1) ? message::Reliability::go_back_n : message::Reliability::selective;
  config.cc.kind = one_of(random, {message::CcKind::swift, message::CcKind::swift, message::CcKind::timely,
                                   message::CcKind::dctcp, message::CcKind::none});
  config.cc.max_window_bytes = 512 << 10;
  config.ack_packets = one_of(random, {1U, 2U, 8U});
  config.max_ack_delay = Nanos{one_of(random, {1'000, 25'000, 100'000})};
  config.peer_timeout = Nanos{one_of(random, {200'000'000, 1'000'000'000})};
  config.connect_timeout = config.peer_timeout;
  config.keepalive = Nanos{one_of(random, {50'000'000, 1'000'000'000})};
  return config;
}

void draw_mishaps(Scenario& scenario, Random& random) {
  if (chance(random, 0.5)) return;
  const std::uint32_t count = static_cast<std::uint32_t>(between(random, 1, 3));
  for (std::uint32_t i = 0; i < count; ++i) {
    Mishap mishap;
    mishap.host = static_cast<std::uint32_t>(random.below(scenario.network.hosts));
    mishap.at = between(random, 0, 5'000'000);
    const std::int64_t timeout = scenario.hosts[0].endpoint.peer_timeout.value;
    switch (random.below(4)) {
      case 0:
        mishap.kind = Mishap::Kind::restart;
        mishap.nanos = chance(random, 0.5) ? between(random, 0, 2'000'000) : between(random, 0, 2 * timeout);
        break;
      case 1:
        mishap.kind = Mishap::Kind::clock_step;
        mishap.nanos = between(random, -1, 1) * one_of<std::int64_t>(random, {1'000, 10'000'000, 3'600'000'000'000});
        break;
      default:
        mishap.kind = Mishap::Kind::pause;
        mishap.nanos = chance(random, 0.7) ? between(random, 10'000, 20'000'000) : between(random, 0, 2 * timeout);
    }
    scenario.mishaps.push_back(mishap);
  }
}

/// Links that carry less than the ends take, from the start or for a while.
void draw_paths(Scenario& scenario, Random& random) {
  const message::EndpointConfig& endpoint = scenario.hosts[0].endpoint;
  const std::uint32_t most = endpoint.datagram_bytes;
  if (endpoint.reliability == message::Reliability::go_back_n || most <= endpoint.base_bytes) return;
  const Nanos raise_time{one_of<std::int64_t>(random, {20'000'000, 600'000'000'000})};
  for (HostConfig& host : scenario.hosts) host.endpoint.mtu_raise_time = raise_time;
  if (chance(random, 0.4)) return;
  const auto count = static_cast<std::uint32_t>(between(random, 1, 6));
  for (std::uint32_t i = 0; i < count; ++i) {
    Mishap mishap;
    mishap.kind = Mishap::Kind::mtu;
    mishap.host = static_cast<std::uint32_t>(random.below(scenario.network.hosts));
    mishap.at = chance(random, 0.3) ? 0 : between(random, 0, 5'000'000);
    mishap.bytes = chance(random, 0.4) ? most : static_cast<std::uint32_t>(between(random, endpoint.base_bytes, most));
    scenario.mishaps.push_back(mishap);
  }
}

/// `host` moves; nobody else knows where to find it. Who waits for it hears of it in time, by its signs of life: none
/// has less patience than it.
void draw_moves(Scenario& scenario, std::uint32_t host, Random& random) {
  Nanos least = message::kNever;
  for (const HostConfig& one : scenario.hosts) least = std::min(least, one.endpoint.peer_timeout);
  for (HostConfig& one : scenario.hosts) {
    one.endpoint.peer_timeout = least;
    one.endpoint.keepalive = Nanos{least.value / 8};
  }
  const auto count = static_cast<std::uint32_t>(between(random, 1, 12));
  const std::int64_t longest = one_of(random, {500'000, 5'000'000, 50'000'000});
  for (std::uint32_t i = 0; i < count; ++i) {
    Mishap mishap;
    mishap.kind = Mishap::Kind::move;
    mishap.host = host;
    mishap.at = between(random, 0, longest);
    mishap.other_address = scenario.authenticated && chance(random, 0.5);  // without keys a session ends there
    scenario.mishaps.push_back(mishap);
  }
}

/// A host that is away for long, again and again, has a full ring each time that it is back: all packets that are sent
/// to it within a few absences may be lost. Its peers wait for so many of them.
constexpr std::int64_t kAbsences = 20;

void be_patient_with_the_absent(Scenario& scenario) {
  std::int64_t away = 0;
  for (const HostConfig& one : scenario.hosts) away = std::max(away, one.longest_away);
  for (HostConfig& one : scenario.hosts) {
    Nanos& patience = one.endpoint.peer_timeout;
    patience = one.endpoint.connect_timeout = Nanos{std::max(patience.value, kAbsences * away)};
  }
}

/// What ICMP says: truly, and by a liar where all hosts are there and quick. A host that hears the liar waits for an
/// eighth of its timeout for a packet of its peer, which is too short for one that is away again and again (seed 8115).
void draw_refusals(Scenario& scenario, Random& random) {
  constexpr std::int64_t kLongestAway = 30'000'000;
  constexpr Nanos kPatient{1'000'000'000};
  for (HostConfig& one : scenario.hosts) one.refuses = chance(random, 0.5);
  std::int64_t away = 0;
  for (const Mishap& mishap : scenario.mishaps) away += mishap.kind == Mishap::Kind::clock_step ? 0 : 2 * kLongestAway;
  std::int64_t again = 0;
  for (const HostConfig& one : scenario.hosts) {
    away = std::max(away, 1000 * one.handler_time);
    again = std::max(again, kAbsences * one.longest_away);
  }
  for (HostConfig& one : scenario.hosts) {
    const Nanos timeout = one.endpoint.peer_timeout;
    const bool quick = away <= kLongestAway && again <= timeout.value / 8;
    if (timeout >= kPatient && quick) one.lied_to = one_of(random, {0.0, 0.01, 1.0});
  }
}

/// Calls in pieces, at all hosts or none.
void draw_streams(Scenario& scenario, Random& random) {
  if (!chance(random, 0.3)) return;
  StreamPlan plan;
  plan.places = static_cast<std::uint32_t>(between(random, 1, 6));
  plan.window = one_of(random, {rpc::kLeastStreamWindow, 65'536U});
  plan.longest = one_of(random, {100U, 3'000U, rpc::kMaxPieceBytes});
  plan.pieces = one_of(random, {3U, 60U, 300U});
  const rpc::CallStreamSettings settings{.streams = plan.places, .window = plan.window};
  for (std::size_t i = 0; i < scenario.hosts.size(); ++i) {
    message::EndpointConfig& endpoint = scenario.hosts[i].endpoint;
    endpoint.streams = true;
    endpoint.receive_window = std::max(endpoint.receive_window, 16 * plan.window);
    endpoint.receive_bytes += settings.most_bytes();
    endpoint.max_messages += static_cast<std::uint32_t>(settings.most_pieces());
    plan.calls = static_cast<std::uint32_t>(between(random, 0, 8));
    plan.at_once = static_cast<std::uint32_t>(between(random, 1, 4));
    plan.pace = static_cast<std::uint32_t>(between(random, 1, 40));
    scenario.plans[i].streams = plan;
  }
}

void draw_drains(Scenario& scenario, Random& random) {
  const auto moves = [](const Mishap& mishap) { return mishap.kind == Mishap::Kind::move; };
  // Whoever has moved would have to be found again by those who do not know where it is.
  if (!chance(random, 0.2) || std::ranges::any_of(scenario.mishaps, moves)) return;
  const auto count = static_cast<std::uint32_t>(between(random, 1, 3));
  for (std::uint32_t i = 0; i < count; ++i) {
    Mishap mishap;
    mishap.kind = Mishap::Kind::drain;
    mishap.host = static_cast<std::uint32_t>(random.below(scenario.network.hosts));
    mishap.at = between(random, 0, 5'000'000);
    mishap.nanos = one_of<std::int64_t>(random, {100'000, 5'000'000'000, 5'000'000'000});
    scenario.mishaps.push_back(mishap);
  }
}

/// A host that nobody opens sessions to; beyond all of them if there is none.
std::uint32_t unasked_host(const Scenario& scenario) {
  const auto asks = [](std::uint32_t host) {
    return [host](const RpcPlan& plan) { return std::ranges::find(plan.peers, host) != plan.peers.end(); };
  };
  std::uint32_t host = 0;
  while (host < scenario.network.hosts && std::ranges::any_of(scenario.plans, asks(host))) ++host;
  return host;
}

}  // namespace

bool Scenario::sessions_may_end() const {
  for (std::uint32_t i = 0; i < hosts.size(); ++i) {
    std::int64_t away = 0;
    for (const Mishap& mishap : mishaps) {
      if (mishap.kind == Mishap::Kind::restart) return true;
      if (mishap.kind == Mishap::Kind::pause && mishap.host != i) away += mishap.nanos;
    }
    // Its own pauses excuse nothing.
    if (away > hosts[i].endpoint.peer_timeout.value / 2) return true;
  }
  return network.faults.loss + network.faults.corrupt > 0.03;
}

bool Scenario::drains_in_time() const {
  constexpr std::int64_t kPlenty = 1'000'000'000;
  return !sessions_may_end() && std::ranges::all_of(mishaps, [](const Mishap& mishap) {
    return mishap.kind == Mishap::Kind::mtu || (mishap.kind == Mishap::Kind::drain && mishap.nanos >= kPlenty);
  });
}

Scenario draw_scenario(std::uint64_t seed) {
  Random random(mix64(seed));
  Scenario scenario;
  scenario.seed = seed;
  NetworkConfig& network = scenario.network;
  network.seed = random.next();
  network.hosts = static_cast<std::uint32_t>(between(random, 2, 6));
  network.faults = draw_faults(random);
  network.downlink.bits_per_second = network.uplink.bits_per_second = one_of(random, {1e9, 10e9, 25e9, 100e9});
  network.downlink.delay = network.uplink.delay = between(random, 200, one_of(random, {2'000, 50'000}));
  network.downlink.capacity_bytes = one_of(random, {20U << 10, 128U << 10, 1U << 20});
  if (chance(random, 0.5)) network.downlink.mark_above_bytes = network.downlink.capacity_bytes / 4;

  HostConfig host;
  host.endpoint = draw_endpoint(random);
  host.check_allocations = true;
  scenario.authenticated = chance(random, 0.3);
  host.damaged_packets_pass = scenario.authenticated;
  RpcPlan plan;
  plan.longest = one_of(random, {100U, 3'000U, 60'000U, 60'000U, 300'000U});
  plan.longest_taken = host.endpoint.max_message_bytes = 1 << 20;
  // Hosts that wait for each other with all their memory taken would wait for ever; no protocol could help them.
  const bool plenty =
      host.endpoint.max_messages >= 2048 && network.hosts * 40 * plan.longest < host.endpoint.receive_bytes;
  if (!plenty) plan.nested = 0;
  plan.pause = chance(random, 0.3) ? between(random, 0, 100'000) : 0;
  for (std::uint32_t i = 0; i < network.hosts; ++i) {
    host.receive_ring = one_of(random, {64U, 1024U});
    host.transmit_ring = one_of(random, {4U, 64U, 512U});
    host.wake_delay = between(random, 0, 2'000);
    host.clock_offset = one_of<std::int64_t>(random, {0, 1'000'000'000'000, -1'000'000'000});
    scenario.hosts.push_back(host);
    plan.messages = static_cast<std::uint32_t>(between(random, 0, 150));
    plan.at_once = static_cast<std::uint32_t>(between(random, 1, 40));
    plan.peers.clear();
    for (std::uint32_t peer = 0; peer < network.hosts; ++peer) {
      if (peer != i && chance(random, 0.6)) plan.peers.push_back(peer);
    }
    if (plan.peers.empty()) plan.peers.push_back((i + 1) % network.hosts);
    scenario.plans.push_back(plan);
  }
  draw_mishaps(scenario, random);
  // From numbers of their own: what a seed was before there were grants and bundles, it still is.
  Random grants(mix64(seed ^ 0x6772616e7473));
  Random bundles(mix64(seed ^ 0x62756e646c65));
  for (HostConfig& one : scenario.hosts) {
    one.endpoint.grants = one_of(grants, {0U, 0U, 10U << 10, 64U << 10});
    one.endpoint.bundles = !chance(bundles, 0.2);
  }
  Random times(mix64(seed ^ 0x74696d6573));
  for (HostConfig& one : scenario.hosts) {
    one.stamps = !chance(times, 0.3);
    if (chance(times, 0.5)) one.endpoint.peer_timeout = one.endpoint.connect_timeout = Nanos{2'000'000'000};
    if (chance(times, 0.5)) one.bursts = static_cast<std::uint32_t>(between(times, 1, 4));
    if (chance(times, 0.5)) {
      one.burst_time = between(times, 0, 5'000);
      one.handler_time = between(times, 0, one_of(times, {1'000, 10'000, 500'000}));
    }
    if (chance(times, 0.3)) {
      one.descheduled = one_of(times, {0.001, 0.01});
      one.longest_away = one_of(times, {100'000, 4'000'000, 30'000'000});
    }
  }
  be_patient_with_the_absent(scenario);
  Random answers(mix64(seed ^ 0x616e7377657273));
  for (RpcPlan& one : scenario.plans) {
    one.in_endpoint = one_of(answers, {0.0, 0.2, 1.0});
    one.metadata = one_of(answers, {0.0, 0.2, 1.0});
  }
  Random queues(mix64(seed ^ 0x717565756573));
  for (RpcPlan& one : scenario.plans) {
    if (!plenty || !chance(queues, 0.3)) continue;  // as for nested ones
    one.messages *= 4;
    one.at_once = static_cast<std::uint32_t>(between(queues, 65, 300));
  }
  Random priorities(mix64(seed ^ 0x7072696f72697479));
  for (RpcPlan& one : scenario.plans) one.high = one_of(priorities, {0.0, 0.05, 0.5, 0.95});
  Random paths(mix64(seed ^ 0x7061746873));
  draw_paths(scenario, paths);
  Random moves(mix64(seed ^ 0x6d6f766573));
  const std::uint32_t unasked = unasked_host(scenario);
  if (unasked < network.hosts && chance(moves, 0.5)) draw_moves(scenario, unasked, moves);
  Random refusals(mix64(seed ^ 0x69636d70));
  draw_refusals(scenario, refusals);
  Random pieces(mix64(seed ^ 0x706965636573));
  draw_streams(scenario, pieces);
  Random drains(mix64(seed ^ 0x6472616964));
  draw_drains(scenario, drains);
  // Go-back-n's fixed timeout lets a few packets through each time. Where a fifth of the packets is lost, a session of
  // any kind has few in flight, and every other one is acknowledged only after a timeout of 1 ms or more.
  constexpr double kMuchLoss = 0.1;
  if (host.endpoint.reliability == message::Reliability::go_back_n || network.faults.loss > kMuchLoss)
    scenario.longest *= 5;
  return scenario;
}

Scenario draw_moving_scenario(std::uint64_t seed) {
  Scenario scenario = draw_scenario(seed);
  std::erase_if(scenario.mishaps, [](const Mishap& mishap) {
    return mishap.kind == Mishap::Kind::move || mishap.kind == Mishap::Kind::drain;
  });
  Random random(mix64(seed ^ 0x6e6f6d6164));
  const auto host = static_cast<std::uint32_t>(random.below(scenario.network.hosts));
  for (std::uint32_t i = 0; i < scenario.plans.size(); ++i) {
    if (i == host) continue;
    std::vector<std::uint32_t>& peers = scenario.plans[i].peers;
    std::erase(peers, host);
    // With whoever else there is; of two, the host itself has asked for a session.
    for (std::uint32_t other = 0; peers.empty() && other < scenario.network.hosts; ++other) {
      if (other != host && other != i) peers.push_back(other);
    }
    // On one session with all its room taken both ends would wait for each other.
    if (peers.empty()) scenario.plans[i].nested = 0;
  }
  draw_moves(scenario, host, random);
  for (HostConfig& one : scenario.hosts) one.lied_to = 0;  // who has moved is not heard soon
  return scenario;
}

std::string describe(const Scenario& scenario) {
  const NetworkConfig& network = scenario.network;
  const message::EndpointConfig& endpoint = scenario.hosts[0].endpoint;
  constexpr std::string_view kControllers[] = {"swift", "timely", "dctcp", "none"};
  std::string text = fmt::format(
      "seed {}: {} hosts, {} Gbit/s, {} ns a link, queues of {} B, marks above {} B\n"
      "  faults on each way: loss {}, duplicate {}, corrupt {}, reorder {} by up to {} ns\n"
      "  datagrams of {} B, {}, {}, {}{} messages, {} sent packets, window {} B, peer timeout {} ms\n"
      "  messages up to {} B\n",
      scenario.seed, network.hosts, network.downlink.bits_per_second / 1e9, network.downlink.delay,
      network.downlink.capacity_bytes, network.downlink.mark_above_bytes, network.faults.loss, network.faults.duplicate,
      network.faults.corrupt, network.faults.reorder, network.faults.reorder_by, endpoint.datagram_bytes,
      endpoint.reliability == message::Reliability::selective ? "selective repeat" : "go-back-n",
      kControllers[static_cast<std::size_t>(endpoint.cc.kind)], scenario.authenticated ? "authenticated, " : "",
      endpoint.max_messages, endpoint.max_sent_packets, endpoint.receive_window,
      endpoint.peer_timeout.value / 1'000'000, scenario.plans[0].longest);
  for (std::size_t i = 0; i < scenario.plans.size(); ++i) {
    const RpcPlan& plan = scenario.plans[i];
    const message::EndpointConfig& own = scenario.hosts[i].endpoint;
    const HostConfig& host = scenario.hosts[i];
    text += fmt::format(
        "  a host sends {}, {} at once, to {}, grants {} B and takes {}; {} bursts a turn of {} ns, {} ns an event, "
        "away with {} for {} us at most; {} of its messages high; refuses: {}, lied to: {}\n",
        plan.messages, plan.at_once, fmt::join(plan.peers, " "), own.grants, own.bundles ? "bundles" : "no bundles",
        host.bursts, host.burst_time, host.handler_time, host.descheduled, host.longest_away / 1000, plan.high,
        host.refuses, host.lied_to);
  }
  constexpr std::string_view kMishaps[] = {
      "pauses", "restarts",         "has its clock stepped", "is reached by datagrams of",
      "drains", "has another port", "has another address"};
  for (const Mishap& mishap : scenario.mishaps) {
    const bool mtu = mishap.kind == Mishap::Kind::mtu;
    text += fmt::format("  host {} {}{} at {} us, {} us\n", mishap.host,
                        kMishaps[static_cast<std::size_t>(mishap.kind) + (mishap.other_address ? 1 : 0)],
                        mtu ? fmt::format(" {} B", mishap.bytes) : "", mishap.at / 1000, mishap.nanos / 1000);
  }
  return text;
}

}  // namespace warpline::sim
