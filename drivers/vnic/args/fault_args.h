// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vnic/faults/faults.h"
#include "warpline/base/result.h"

namespace warpline::vnic {

/// The keys that set_fault() takes, as they stand in a vdev string.
[[nodiscard]] std::span<const std::string> fault_keys();
[[nodiscard]] bool is_fault_key(std::string_view key);

/// Sets one value: a probability (`loss=0.01`), a time (`delay=10us`; a bare number counts in microseconds), a rate
/// (`rate=10gbit`, or `max`), bytes (`queue_bytes=64Ki`) or a count. A usage error, and nothing changed, otherwise.
Result<void> set_fault(FaultConfig& config, std::string_view key, std::string_view value);

/// "loss=0.01,delay=10us": what differs from a wire without faults, as set_fault() reads it back.
[[nodiscard]] std::string to_string(const FaultConfig& config);

}  // namespace warpline::vnic
