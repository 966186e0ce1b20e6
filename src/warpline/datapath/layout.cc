// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpline/port/port_settings.h"

namespace warpline::datapath {
namespace {

/// The port that packets from `port` leave by, of `ports` in all.
std::uint16_t partner(std::uint16_t port, std::size_t ports) {
  const auto other = static_cast<std::uint16_t>(port ^ 1U);
  return other < ports ? other : port;
}

class LayoutBuilder {
 public:
  LayoutBuilder(const DatapathSettings& settings, const std::vector<int>& nodes, std::size_t cpus)
      : settings_(settings), nodes_(nodes), cpus_(settings.lcores != 0 ? settings.lcores : cpus) {
    for (std::uint16_t port = 0; port < nodes.size(); ++port) {
      for (std::uint16_t queue = 0; queue < settings.forward.pipelines; ++queue) {
        layout_.paths.push_back({port, partner(port, nodes.size()), queue});
      }
    }
  }

  ForwardLayout build() && {
    const bool share = replies_share_queues();
    layout_.model = settings_.forward.model;
    if (layout_.model == ModelKind::automatic) {
      layout_.model =
          settings_.forward.engine == EngineKind::thread && !share ? ModelKind::pipeline : ModelKind::run_to_completion;
    }
    layout_.replies_share_queues = layout_.mixes_ports = share && layout_.model == ModelKind::run_to_completion;
    if (layout_.model == ModelKind::run_to_completion) {
      add_run_to_completion();
    } else {
      for (std::uint16_t path = 0; path < layout_.paths.size(); ++path) add_pipeline(path);
    }
    if (settings_.forward.loopback) add_far_side();
    return std::move(layout_);
  }

 private:
  void add(Role role, std::string name, std::string queues, int node, int near) {
    layout_.roles.push_back(std::move(role));
    layout_.requests.push_back({std::move(name), std::move(queues), node, near});
  }

  [[nodiscard]] int last() const { return static_cast<int>(layout_.requests.size()) - 1; }

  /// One lcore takes several paths rather than that two lcores share a processor.
  void add_run_to_completion() {
    const std::size_t far = settings_.forward.loopback ? settings_.forward.pipelines : 0;
    const std::size_t free_cpus = cpus_ > far ? cpus_ - far : 1;
    const std::size_t most = layout_.replies_share_queues ? settings_.forward.pipelines : layout_.paths.size();
    const std::size_t workers = std::min(most, free_cpus);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      Role role{RoleKind::run_to_completion, {}, 0};
      std::string queues;
      for (std::size_t path = 0; path < layout_.paths.size(); ++path) {
        const std::size_t turn = layout_.replies_share_queues ? layout_.paths[path].queue : path;
        if (turn % workers != worker) continue;
        role.paths.push_back(static_cast<std::uint16_t>(path));
        const PathRoute& route = layout_.paths[path];
        queues += fmt::format("{}port {} rx {} to port {} tx {}", queues.empty() ? "" : ", ", route.rx_port,
                              route.queue, route.tx_port, route.queue);
      }
      const int node = nodes_[layout_.paths[worker].rx_port];
      add(std::move(role), fmt::format("forward {}", worker), std::move(queues), node, runtime::kNoWorker);
    }
    for (std::uint16_t path = 0; path < layout_.paths.size(); ++path) {
      add_engine(path, static_cast<int>(path % workers));
    }
  }

  /// Whether answers have no queue of their own.
  [[nodiscard]] bool replies_share_queues() const {
    return std::ranges::any_of(layout_.paths, [this](const PathRoute& path) {
      return path.rx_port != path.tx_port && path.rx_port < settings_.ports.size() &&
             !settings_.ports[path.rx_port].addresses.empty() &&
             port::has_queue_pairs(settings_.ports[path.rx_port].spec);
    });
  }

  void add_pipeline(std::uint16_t path) {
    const PathRoute& route = layout_.paths[path];
    add({RoleKind::receive, {path}}, fmt::format("rx {}", path),
        fmt::format("port {} rx {}", route.rx_port, route.queue), nodes_[route.rx_port], runtime::kNoWorker);
    const int receiver = last();
    add_engine(path, receiver);
    add({RoleKind::transmit, {path}}, fmt::format("tx {}", path),
        fmt::format("port {} tx {}", route.tx_port, route.queue), nodes_[route.tx_port], receiver);
  }

  /// Host threads that an engine keeps busy.
  [[nodiscard]] std::uint16_t engine_threads() const {
    switch (settings_.forward.engine) {
      case EngineKind::inline_:
      case EngineKind::persistent:
        return 0;
      case EngineKind::thread:
        return settings_.forward.ctas;
      case EngineKind::launch:
      case EngineKind::graph:
        return 1;
    }
    return 0;
  }

  void add_engine(std::uint16_t path, int near) {
    for (std::uint16_t lane = 0; lane < engine_threads(); ++lane) {
      add({RoleKind::engine, {path}, lane}, fmt::format("engine {}.{}", path, lane), "", runtime::kAnyNode, near);
    }
  }

  void add_far_side() {
    for (std::uint16_t queue = 0; queue < settings_.forward.pipelines; ++queue) {
      add({RoleKind::far_side, {queue}}, fmt::format("far {}", queue),
          fmt::format("far port rx {}, tx {}", queue, queue), runtime::kAnyNode, 0);
    }
  }

  const DatapathSettings settings_;
  const std::vector<int>& nodes_;
  std::size_t cpus_;
  ForwardLayout layout_;
};

}  // namespace

std::uint16_t ForwardLayout::reply_queue(const DatapathSettings& settings, const PathRoute& path) const {
  const bool own = path.rx_port == path.tx_port || replies_share_queues;
  return static_cast<std::uint16_t>(own ? path.queue : settings.forward.pipelines + path.queue);
}

std::uint16_t ForwardLayout::tx_queues(const DatapathSettings& settings, std::uint16_t port) const {
  const std::uint16_t pipelines = settings.forward.pipelines;
  const bool needs_more = std::ranges::any_of(paths, [&](const PathRoute& route) {
    return route.rx_port == port && reply_queue(settings, route) >= pipelines;
  });
  const bool answers = port < settings.ports.size() && !settings.ports[port].addresses.empty();
  return needs_more && answers ? pipelines * 2 : pipelines;
}

ForwardLayout lay_out_forward(const DatapathSettings& settings, const std::vector<int>& nodes, std::size_t cpus) {
  return LayoutBuilder(settings, nodes, cpus).build();
}

}  // namespace warpline::datapath
