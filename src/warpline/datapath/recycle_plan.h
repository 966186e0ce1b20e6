// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/memory/recycle_setup.h"

namespace warpline::datapath {

/// Which lcore polls and sends on which queues in a `forward` run, one entry for each of layout.roles, and which
/// receive queue's buffers leave by which transmit queue. `ports`: ids, by the index that the layout counts them with.
[[nodiscard]] memory::RecyclePlan recycle_plan(const DatapathSettings& settings, const ForwardLayout& layout,
                                               const std::vector<std::uint16_t>& ports);

/// Lets each path know the recycler of the lcore that receives it, which must outlive it.
void give_recyclers(const memory::Recycling& recycling, const ForwardLayout& layout,
                    const std::vector<std::unique_ptr<QueuePath>>& paths);

}  // namespace warpline::datapath
