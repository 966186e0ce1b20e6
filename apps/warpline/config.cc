// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <vector>

#include "commands.h"
#include "frame/run_frame.h"
#include "message_layout.h"
#include "traffic_layout.h"
#include "warpline/base/give_way.h"
#include "warpline/datapath/layout.h"
#include "warpline/machine/topology.h"
#include "warpline/port/offloads.h"
#include "warpline/route/route_file.h"
#include "warpline/router/route_layout.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/stream_port/run/stream_run.h"
#include "warpline/traffic/traffic.h"

namespace warpline {
namespace {

std::string dump(const nlohmann::json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (!value.is_array()) return dump(value);
  std::string joined;
  for (const nlohmann::json& element : value) joined += (joined.empty() ? "" : ",") + text_of(element);
  return joined;
}

/// Where the command would run its threads on this machine.
Result<runtime::LcorePlan> plan_of(const config::Config& config) {
  std::vector<int> nodes;
  nodes.reserve(config.ports.size() + 1);
  for (const port::PortSettings& port : config.ports) nodes.push_back(runtime::port_node(port.spec));
  if (nodes.empty()) nodes.push_back(runtime::kAnyNode);  // of a loopback
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  const auto requests = [&] {
    if (config.command == config::Command::generate) return traffic_requests(nodes, config.traffic.queues);
    if (config.command == config::Command::message) return message_requests(config, nodes.front());
    if (config.command == config::Command::stream)
      return stream_port::stream_requests(nodes.front(), config.stream.pipelines);
    if (config.command == config::Command::l3forward)
      return router::lay_out_routing(config.datapath(), nodes, topology.cpus.size()).requests;
    const datapath::DatapathSettings settings = config.datapath();
    return datapath::lay_out_forward(settings, settings.near_nodes(nodes), topology.cpus.size()).requests;
  };
  return runtime::place_workers(config.runtime, requests());
}

nlohmann::json to_json(const runtime::LcorePlan& plan) {
  nlohmann::json workers = nlohmann::json::array();
  for (const runtime::PlacedWorker& worker : plan.workers) {
    workers.push_back({{"name", worker.request.name},
                       {"queues", worker.request.queues},
                       {"lcore", worker.lcore},
                       {"cpu", worker.cpu.id},
                       {"node", worker.cpu.node},
                       {"shares_cpu", worker.shares_cpu}});
  }
  return {{"workers", workers},
          {"control_lcore", plan.control_lcore},
          {"control_cpus", plan.control_cpus},
          {"notes", plan.notes}};
}

void print_table(const std::vector<config::Setting>& settings) {
  constexpr std::size_t kWidest = 40;
  std::size_t names = 0, values = 0;
  for (const config::Setting& setting : settings) {
    names = std::max(names, setting.name.size());
    values = std::max(values, std::min(text_of(setting.value).size(), kWidest));
  }
  for (const config::Setting& setting : settings) {
    fmt::print("{:<{}}  {:<{}}  {}\n", setting.name, names, text_of(setting.value), values,
               config::to_string(setting.origin));
  }
}

/// What only the modules that use a value can say about it, without asking the machine; in the order of a run, which
/// names the first.
std::vector<Error> problems_of_use(const config::Config& config) {
  std::vector<Error> problems;
  const auto note = [&](const auto& result) {
    if (!result.ok()) problems.push_back(result.error());
  };
  const auto check_setup = [&](const port::PortSettings& port) {
    note(port::offload_bits(port::OffloadSide::rx, port.rx_offloads));
    note(port::offload_bits(port::OffloadSide::tx, port.tx_offloads));
    note(port::rss_bits(port.rss_fields));
  };
  const bool sends =
      config.command == config::Command::generate || config.forward.loopback || config.forward.tx_first != 0;
  if (config.command == config::Command::l3forward) {
    std::vector<route::RouterPort> ports;
    for (const port::PortSettings& port : config.ports)
      ports.push_back({.mac = {}, .mtu = port.mtu, .addresses = port.addresses});
    note(route::read_routes(config.l3forward.routes, ports, config.l3forward.lookup == router::LookupKind::exact));
  }
  if (sends) note(traffic::TrafficPlan::make(config.traffic, config.run.seed));
  if (config.ports.empty()) check_setup(config.port_defaults);
  for (const port::PortSettings& port : config.ports) {
    if (config.command != config::Command::message || port.spec != "socket") note(runtime::parse_port_spec(port.spec));
    check_setup(port);
  }
  return problems;
}

int print_problems(const std::vector<Error>& problems, bool json) {
  if (json) {
    nlohmann::json lines = nlohmann::json::array();
    for (const Error& problem : problems) lines.push_back(problem.message());
    const nlohmann::json answer = {
        {"schema_version", 1}, {"command", "config check"}, {"ok", problems.empty()}, {"problems", lines}};
    fmt::print("{}\n", dump(answer, 2));
  } else {
    for (const Error& problem : problems) fmt::print("{}\n", problem.message());
  }
  return problems.empty() ? 0 : static_cast<int>(ErrorKind::usage);
}

int show(const config::LoadedConfig& loaded) {
  for (const Error& problem : loaded.problems) spdlog::error("{}", problem.message());
  if (!loaded.problems.empty()) return static_cast<int>(ErrorKind::usage);
  const bool plannable = !loaded.config.ports.empty() || loaded.config.forward.loopback;
  const auto plan = plan_of(loaded.config);
  if (loaded.json) {
    nlohmann::json answer = {{"schema_version", 1},
                             {"command", fmt::format("config show {}", name(loaded.config.command))},
                             {"config", loaded.to_json()}};
    for (const config::Setting& setting : loaded.settings)
      answer["origins"][setting.name] = config::to_string(setting.origin);
    if (plannable && plan.ok()) answer["plan"] = to_json(*plan);
    fmt::print("{}\n", dump(answer, 2));
  } else {
    print_table(loaded.settings);
    if (plannable && plan.ok()) fmt::print("\n{}", runtime::format(*plan));
  }
  if (!plannable || plan.ok()) return 0;
  spdlog::error("{}", plan.error().message());
  return static_cast<int>(plan.error().kind);
}

}  // namespace

Result<int> run_config(const config::LoadedConfig& loaded) {
  if (loaded.task == config::Task::show) return show(loaded);
  std::vector<Error> problems = loaded.problems;
  if (problems.empty()) problems = problems_of_use(loaded.config);
  return print_problems(problems, loaded.json);
}

}  // namespace warpline
