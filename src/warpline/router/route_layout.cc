// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/route_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpline::router {

datapath::ForwardLayout lay_out_routing(const datapath::DatapathSettings& settings, const std::vector<int>& nodes,
                                        std::size_t cpus) {
  datapath::ForwardLayout layout{.model = datapath::ModelKind::run_to_completion,
                                 .mixes_ports = true,
                                 .replies_share_queues = false,
                                 .paths = {},
                                 .roles = {},
                                 .requests = {}};
  const std::uint16_t pipelines = settings.forward.pipelines;
  const auto ports = static_cast<std::uint16_t>(nodes.size());
  for (std::uint16_t queue = 0; queue < pipelines; ++queue) {
    for (std::uint16_t port = 0; port < ports; ++port) layout.paths.push_back({port, port, queue});
  }
  const std::size_t most = settings.lcores != 0 ? settings.lcores : cpus;
  const std::size_t workers = std::min<std::size_t>(pipelines, std::max<std::size_t>(most, 1));
  for (std::size_t worker = 0; worker < workers; ++worker) {
    datapath::Role role{datapath::RoleKind::run_to_completion, {}, 0};
    std::string queues;
    for (std::size_t queue = worker; queue < pipelines; queue += workers) {
      for (std::uint16_t port = 0; port < ports; ++port) {
        role.paths.push_back(static_cast<std::uint16_t>(queue * ports + port));
      }
      queues += fmt::format("{}rx {} and tx {} of all ports", queues.empty() ? "" : ", ", queue, queue);
    }
    layout.roles.push_back(std::move(role));
    layout.requests.push_back({fmt::format("route {}", worker), std::move(queues),
                               ports == 0 ? runtime::kAnyNode : nodes.front(), runtime::kNoWorker});
  }
  return layout;
}

}  // namespace warpline::router
