// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"

namespace warpline::router {

/// Who does what in an `l3forward` run: a pipeline is one queue pair of every port, polled and sent on by one lcore; it
/// has a path for each port, whose packets may leave by any. One lcore takes several pipelines rather than that two
/// share a processor. Pure.
[[nodiscard]] datapath::ForwardLayout lay_out_routing(const datapath::DatapathSettings& settings,
                                                      const std::vector<int>& nodes, std::size_t cpus);

}  // namespace warpline::router
