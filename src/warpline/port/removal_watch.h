// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace warpline::port {

// What a Port does so that any_removed() knows of it. Control thread.

/// `watch_removal` begins to listen for the end of a port's device. What was known of one of that name is forgotten.
void watch_removal(std::uint16_t port, const std::string& device);
/// `end_removal_watch` listens no more; what is known stays.
void end_removal_watch(std::uint16_t port, const std::string& device);

}  // namespace warpline::port
