// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "warpline/port/port.h"

namespace warpline::port {

/// What is sent before a link is up is lost, and to negotiate one takes seconds. Waits for those of all started
/// `ports`, 9 s at most, and no longer once `stop` is set, which a signal may do; says in a line on stderr what it
/// waits for. Returns the names of the ports whose link is still down. Control thread.
[[nodiscard]] std::vector<std::string> wait_for_links(std::span<const Port> ports, const std::atomic<bool>& stop);

}  // namespace warpline::port
