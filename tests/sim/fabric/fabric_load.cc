// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fabric_load.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace warpline::sim {
namespace {

constexpr std::uint32_t kEdges[] = {128,    300,     1'000,     3'000,     10'000,     30'000,
                                    70'000, 300'000, 1'000'000, 3'000'000, 10'000'000, 0xffffffff};
constexpr std::int64_t kConnecting = 300'000;  // nanoseconds over which sessions are opened
constexpr std::int64_t kStep = 20'000;
constexpr std::uint32_t kHeadBytes = 40;  // of a packet of one fragment, as measured: see least_time()

}  // namespace

double least_time(const FatTreeSettings& tree, const FabricHostSettings& host, std::uint32_t fragment_bytes,
                  std::uint32_t bytes, std::uint32_t links) {
  const double ns_a_byte = tree.picoseconds_a_byte / 1000.0;
  const std::uint32_t packets = std::max(1U, (bytes + fragment_bytes - 1) / fragment_bytes);
  const double all = (double{1.0} * bytes + double{1.0} * packets * (kHeadBytes + kWireOverhead)) * ns_a_byte;
  const double longest = (std::min(bytes, fragment_bytes) + kHeadBytes + kWireOverhead) * ns_a_byte;
  return all + (links - 1) * longest + links * static_cast<double>(tree.hop) + static_cast<double>(host.wake_delay);
}

FabricLoad::FabricLoad(const FatTreeSettings& tree, const FabricHostSettings& host, const FabricPlan& plan)
    : plan_(plan), host_settings_(host), random_(mix64(plan.seed)), fabric_(tree, host, *this) {
  for (const std::uint32_t edge : kEdges) sizes_.push_back({edge, {}, 0});
}

void FabricLoad::connect() {
  const std::uint32_t hosts = fabric_.hosts();
  peers_.resize(hosts);
  if (plan_.pattern == FabricPlan::Pattern::incast) {
    // Groups of hosts at random; the first of each is sent to by the others.
    std::vector<std::uint32_t> order(hosts);
    for (std::uint32_t i = 0; i < hosts; ++i) order[i] = i;
    for (std::uint32_t i = hosts - 1; i > 0; --i) std::swap(order[i], order[random_.below(i + 1)]);
    const std::uint32_t groups = hosts / (plan_.fan + 1);
    rounds_.resize(groups);
    for (std::uint32_t g = 0; g < groups; ++g) {
      rounds_[g].receiver = order[g * (plan_.fan + 1)];
      for (std::uint32_t i = 1; i <= plan_.fan; ++i) peers_[order[g * (plan_.fan + 1) + i]] = {rounds_[g].receiver};
    }
    for (auto& each : peers_) {
      if (each.size() == 1) continue;
      each.clear();
    }
  } else {
    for (std::uint32_t i = 0; i < hosts; ++i) {
      while (peers_[i].size() < plan_.peers) {
        const auto peer = static_cast<std::uint32_t>(random_.below(hosts));
        if (peer != i && std::ranges::find(peers_[i], peer) == peers_[i].end()) peers_[i].push_back(peer);
      }
    }
  }
  for (std::uint32_t i = 0; i < hosts; ++i) {
    arrivals_[i].host = i;
    fabric_.wheel().at(static_cast<std::int64_t>(random_.below(kConnecting)), arrivals_[i]);
  }
}

std::int64_t FabricLoad::gap() {
  const FatTreeSettings& tree = fabric_.tree().settings();
  const double bytes_a_ns = 1000.0 / tree.picoseconds_a_byte * plan_.load;
  const double uniform = (static_cast<double>(random_.next() >> 11) + 1) * 0x1p-53;
  return static_cast<std::int64_t>(-std::log(uniform) * plan_.sizes->mean() / bytes_a_ns);
}

void FabricLoad::begin(std::uint32_t from, std::uint32_t peer, std::uint32_t bytes, std::uint32_t round) {
  const std::int64_t now = fabric_.wheel().now();
  const bool counts = now >= count_from_ && now < count_until_;
  messages_.push_back({now, from, peers_[from][peer], bytes, round, counts, false});
  counted_left_ += counts ? 1 : 0;
  fabric_.host(from).send(peer, bytes, messages_.size() - 1);
}

void FabricLoad::happen(Arrival& arrival) {
  if (count_from_ == INT64_MAX) return fabric_.host(arrival.host).connect(peers_[arrival.host]);
  const auto peer = static_cast<std::uint32_t>(random_.below(plan_.peers));
  begin(arrival.host, peer, plan_.sizes->draw(random_), 0);
  fabric_.wheel().at(fabric_.wheel().now() + gap(), arrival);
}

void FabricLoad::begin_round(std::uint32_t group) {
  Round& round = rounds_[group];
  round.begun = fabric_.wheel().now();
  for (std::uint32_t i = 0; i < fabric_.hosts(); ++i) {
    if (peers_[i].empty() || peers_[i][0] != round.receiver) continue;
    ++round.left;
    begin(i, 0, plan_.bytes, group);
  }
}

void FabricLoad::arrived(std::uint32_t from, std::uint64_t number) {
  const std::int64_t now = fabric_.wheel().now();
  if (number >= messages_.size() || messages_[number].from != from || messages_[number].here) {
    ++failed_;
    return;
  }
  Message& message = messages_[number];
  message.here = true;
  ++arrived_;
  if (now >= count_from_ && now < count_until_) arrived_bytes_ += message.bytes;
  const FatTreeSettings& tree = fabric_.tree().settings();
  if (message.counts) {
    --counted_left_;
    const double least = least_time(tree, host_settings_, fragment_bytes_, message.bytes,
                                    fabric_.tree().links(message.from, message.to));
    const auto range = std::ranges::lower_bound(sizes_, message.bytes, {}, &FabricSizes::up_to);
    range->slowdowns.push_back(static_cast<float>(static_cast<double>(now - message.begun) / least));
  }
  if (plan_.pattern == FabricPlan::Pattern::all_to_all) {
    begin(message.from, message.round, plan_.bytes, message.round);
  } else if (plan_.pattern == FabricPlan::Pattern::incast && --rounds_[message.round].left == 0) {
    const std::int64_t begun = rounds_[message.round].begun;
    if (begun >= count_from_ && begun < count_until_) {
      const double one = least_time(tree, host_settings_, fragment_bytes_, plan_.bytes, 2);
      const double each =
          (plan_.bytes + std::ceil(double{1.0} * plan_.bytes / fragment_bytes_) * (kHeadBytes + kWireOverhead)) *
          tree.picoseconds_a_byte / 1000.0;
      round_slowdowns_.push_back(static_cast<float>(static_cast<double>(now - begun) / (one + each * (plan_.fan - 1))));
    }
    begin_round(message.round);
  }
}

void FabricLoad::sent(FabricHost& /*host*/, bool well) { failed_ += well ? 0 : 1; }

FabricFigures FabricLoad::run() {
  arrivals_.resize(fabric_.hosts());
  const auto what = [this](WheelEvent& event) { happen(static_cast<Arrival&>(event)); };
  connect();
  const auto connected = [&] {
    for (std::uint32_t i = 0; i < fabric_.hosts(); ++i) {
      if (!fabric_.host(i).connected()) return false;
    }
    return true;
  };
  std::int64_t now = kConnecting;
  fabric_.run_until(now, what);
  for (; !connected() && now < 100 * kConnecting; now += kStep) fabric_.run_until(now, what);
  for (std::uint32_t i = 0; i < fabric_.hosts(); ++i) {
    if (!peers_[i].empty()) fragment_bytes_ = fabric_.host(i).fragment_bytes();
  }
  count_from_ = now + plan_.warm_up;
  count_until_ = count_from_ + plan_.measured;
  switch (plan_.pattern) {
    case FabricPlan::Pattern::mixed:
      for (Arrival& arrival : arrivals_) fabric_.wheel().at(now + gap(), arrival);
      break;
    case FabricPlan::Pattern::all_to_all:
      for (std::uint32_t i = 0; i < fabric_.hosts(); ++i) {
        for (std::uint32_t peer = 0; peer < plan_.peers; ++peer) begin(i, peer, plan_.bytes, peer);
      }
      break;
    case FabricPlan::Pattern::incast:
      for (std::uint32_t group = 0; group < rounds_.size(); ++group) begin_round(group);
      break;
  }
  const FatTreeCounters before = fabric_.tree().counters();
  for (; now < count_until_; now += kStep) fabric_.run_until(now + kStep, what);
  const std::int64_t end = count_until_ + plan_.longest;
  for (; now < end && counted_left_ != 0; now += kStep) fabric_.run_until(now + kStep, what);

  FabricFigures figures;
  figures.virtual_ms = static_cast<double>(now) / 1e6;
  for (const Message& message : messages_) {
    if (!message.counts) continue;
    ++figures.begun;
    if (message.here) continue;
    ++std::ranges::lower_bound(sizes_, message.bytes, {}, &FabricSizes::up_to)->unfinished;
  }
  add(figures);
  figures.tree.hops -= before.hops;
  figures.sizes = std::move(sizes_);
  figures.rounds = std::move(round_slowdowns_);
  return figures;
}

void FabricLoad::add(FabricFigures& figures) {
  figures.arrived = arrived_;
  figures.failed = failed_;
  figures.tree = fabric_.tree().counters();
  const double receivers = plan_.pattern == FabricPlan::Pattern::incast ? static_cast<double>(rounds_.size())
                                                                        : static_cast<double>(arrivals_.size());
  figures.goodput_gbit = static_cast<double>(arrived_bytes_) * 8 / static_cast<double>(plan_.measured) / receivers;
  for (std::uint32_t i = 0; i < arrivals_.size(); ++i) {
    const message::EndpointCounters& counters = fabric_.host(i).endpoint().counters();
    figures.datagrams += counters.packets_out.get();
    figures.lost += counters.packets_lost.get();
    figures.spurious += counters.losses_spurious.get();
    figures.timeouts += counters.timeouts.get() + counters.probes.get();
  }
}

}  // namespace warpline::sim
