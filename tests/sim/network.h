// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/event_queue.h"
#include "sim/packet.h"
#include "sim/port.h"
#include "warpline/base/random.h"

namespace warpline::sim {

struct NetworkConfig {
  std::uint32_t hosts = 2;
  PortSettings uplink{.capacity_bytes = 64U << 20};  ///< host to switch: hosts look at the queue before they feed it
  PortSettings downlink = {};                        ///< switch to host: the queue that congestion fills
  Faults faults = {};                                ///< of the links from the switch to the hosts: once on each way
  std::uint64_t seed = 0;
};

/// Hosts around one switch that buffers at its outputs.
class Network final : public PacketSink {
 public:
  Network(EventQueue& events, const NetworkConfig& config) : events_(events) {
    Random seeds(config.seed);
    for (std::uint32_t i = 0; i < config.hosts; ++i) {
      uplinks_.push_back(std::make_unique<Port>(events, pool_, config.uplink, Faults{}, seeds.next()));
      uplinks_.back()->connect(*this);
      downlinks_.push_back(std::make_unique<Port>(events, pool_, config.downlink, config.faults, seeds.next()));
    }
  }

  /// Feeds `departures` from the host's port on, and it `sink`.
  void attach(std::uint32_t host, PacketSink& sink, Departures& departures) {
    downlinks_[host]->connect(sink);
    uplinks_[host]->tell_departures(departures);
  }

  [[nodiscard]] EventQueue& events() { return events_; }
  [[nodiscard]] PacketPool& pool() { return pool_; }
  [[nodiscard]] Port& uplink(std::uint32_t host) { return *uplinks_[host]; }
  [[nodiscard]] Port& downlink(std::uint32_t host) { return *downlinks_[host]; }
  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(downlinks_.size()); }

  /// At the switch. A packet for nobody is dropped.
  void arrive(Packet* packet) override {
    if (packet->to < downlinks_.size()) return downlinks_[packet->to]->offer(packet);
    pool_.give(packet);
  }

 private:
  EventQueue& events_;
  PacketPool pool_;
  std::vector<std::unique_ptr<Port>> uplinks_;
  std::vector<std::unique_ptr<Port>> downlinks_;
};

}  // namespace warpline::sim
