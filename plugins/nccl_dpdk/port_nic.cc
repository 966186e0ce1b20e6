// SPDX-License-Identifier: Apache-2.0
#include "nccl_dpdk/port_nic.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include <rte_lcore.h>

#include "nccl/log.h"
#include "nccl_dpdk/port_list.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/transport/ethdev/message_port.h"

namespace warpline::nccl {
namespace {

constexpr std::uint32_t kMaxSessions = 2048;  ///< of a lane

std::uint16_t payload_of(const PortChoice& port, const Settings& settings) {
  const bool v4 = std::holds_alternative<Ipv4Address>(port.address.address);
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(settings.datagram_bytes, port.mtu - (v4 ? 28U : 48U)));
}

port::PortSettings port_settings(const PortChoice& port) {
  port::PortSettings made;
  made.spec = port.spec;
  made.mtu = port.device_mtu;
  made.rx_ring = made.tx_ring = port.ring;
  made.addresses = {port.address};
  return made;
}

transport::MessagePortConfig port_config(const PortList& list, const PortChoice& port, const Settings& settings) {
  transport::MessagePortConfig config;
  config.workers = static_cast<std::uint16_t>(settings.lanes);
  // Another one each time: what is late for a process that had the port before is nobody's.
  config.udp_port = static_cast<std::uint16_t>(49'152 + std::random_device{}() % 16'000);
  config.own_ports = true;
  config.gateway = list.gateway;
  config.max_sessions = kMaxSessions;
  config.datagram_bytes = payload_of(port, settings);
  if (port.mtu != port.device_mtu) config.pool.data_room = memory::data_room(port.mtu);
  config.udp_checksum = !port.local;  // of memory that is copied nobody makes sums
  return config;
}

/// An open port, with a queue a lane.
class PortTransports final : public NicTransports {
 public:
  PortTransports(std::unique_ptr<transport::MessagePort> port, const transport::MessagePortConfig& config)
      : port_(std::move(port)), config_(config) {}

  LaneTransport of_lane(std::uint32_t number) override {
    const auto worker = static_cast<std::uint16_t>(number);
    return {port_->queue(worker), static_cast<std::uint16_t>(config_.udp_port + worker), config_.datagram_bytes,
            port_->port().setup().rx_ring * config_.datagram_bytes};
  }

  // With a number of DPDK's a thread keeps buffers at hand. It does without if there is none left.
  void enter() override { (void)rte_thread_register(); }
  void leave() override { rte_thread_unregister(); }
  void tend(Nanos now) override {
    for (const std::string& line : port_->tend(now)) log(LogLevel::warn, line);
  }

  [[nodiscard]] std::optional<Error> trouble() const override {
    if (port_->port().link().up) return std::nullopt;
    return environment_error("", fmt::format("the link of port {} is down", port_->port().name()),
                             "see the cable, or, of net_memif, whether the process at its other end runs");
  }

  [[nodiscard]] const port::Port& port() const { return port_->port(); }

 private:
  std::unique_ptr<transport::MessagePort> port_;
  transport::MessagePortConfig config_;
};

class PortNic final : public Nic {
 public:
  PortNic(const PortChoice& choice, std::shared_ptr<PortTransports> transports) : transports_(std::move(transports)) {
    facts_.name = transports_->port().name();
    facts_.address = choice.address.address;
    facts_.mtu = choice.mtu;
    facts_.local = choice.local;
    if (const std::uint32_t speed = transports_->port().link().mbit_per_s; speed != 0)
      facts_.speed = static_cast<int>(speed);
    std::error_code none;
    const auto path = std::filesystem::canonical("/sys/bus/pci/devices/" + facts_.name, none);
    if (!none) facts_.pci_path = path;
  }

  [[nodiscard]] const NicFacts& facts() const override { return facts_; }
  Result<std::shared_ptr<NicTransports>> open(const Settings&) override { return {transports_}; }

 private:
  NicFacts facts_;
  std::shared_ptr<PortTransports> transports_;
};

/// DPDK, once a process and to its end.
Result<void> start_dpdk(const PortList& list, const Settings& settings) {
  static const runtime::Eal* started = nullptr;
  if (started != nullptr) return {};
  Bytes memory;
  std::vector<std::string> specs;
  for (const PortChoice& port : list.ports) {
    memory.value += transport::MessagePort::memory(port_settings(port), port_config(list, port, settings)).value;
    specs.push_back(port.spec);
  }
  WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start({}, {}, specs, memory));
  for (const std::string& note : eal.notes()) log(LogLevel::info, note);
  started = new runtime::Eal(std::move(eal));
  return {};
}

constexpr std::chrono::milliseconds kLook{10};

bool comes_up(const port::Port& port) {
  constexpr int kLooks = 100;
  for (int i = 0; i < kLooks && !port.link().up; ++i) std::this_thread::sleep_for(kLook);
  return port.link().up;
}

/// Opens a port. One that waits for the process at its other end tries again until that is there: net_memif's client
/// connects once, as it is started, and not to a server that is about to begin.
Result<std::unique_ptr<transport::MessagePort>> open_port(const PortChoice& choice,
                                                          const transport::MessagePortConfig& config, Nanos patience) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patience.value);
  while (true) {
    auto port = transport::MessagePort::open(port_settings(choice), config);
    if (!choice.waits || (port && comes_up((*port)->port()))) return port;
    if (std::chrono::steady_clock::now() >= end) {
      return environment_error(fmt::format("port {}", choice.spec),
                               port ? "its link does not come up" : port.error().message(),
                               "start the process at its other end; WARPLINE_NCCL_TIMEOUT sets how long is waited");
    }
    std::this_thread::sleep_for(kLook);
  }
}

Result<Nics> open_ports(const PortList& list, const Settings& settings) {
  WARPLINE_CHECK(start_dpdk(list, settings));
  Nics nics;
  for (const PortChoice& choice : list.ports) {
    const transport::MessagePortConfig config = port_config(list, choice, settings);
    WARPLINE_TRY(auto port, open_port(choice, config, settings.timeout));
    for (const std::string& refused : port->port().setup().refused)
      log(LogLevel::info, fmt::format("{}: {}", port->port().name(), refused));
    nics.push_back(std::make_unique<PortNic>(choice, std::make_shared<PortTransports>(std::move(port), config)));
  }
  return nics;
}

}  // namespace

Result<Nics> find_port_nics(const Settings& settings) {
  WARPLINE_TRY(const PortList list, read_port_list([](const char* name) -> const char* { return std::getenv(name); }));
  for (const PortChoice& port : list.ports) WARPLINE_CHECK(runtime::check_port_spec(port.spec));
  // On a thread that ends: DPDK pins the one that starts it. Signals are for the program's own threads.
  Result<Nics> found = Nics{};
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread starter([&] { found = open_ports(list, settings); });
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  starter.join();
  return found;
}

}  // namespace warpline::nccl
