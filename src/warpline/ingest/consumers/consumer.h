// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "warpline/base/host_device.h"
#include "warpline/handoff/engine.h"

namespace warpline::ingest {

/// `ConsumerTally` is what a consumer counted itself, where it ran.
struct ConsumerTally {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;  ///< of all packets' frame_sum(), modulo 2^64: the same in whatever order they came

  void merge(const ConsumerTally& other) {
    packets += other.packets;
    bytes += other.bytes;
    sum += other.sum;
  }
  bool operator==(const ConsumerTally&) const = default;
};

/// A `Consumer` is what is done with each packet: a small value that an engine copies to each of its workers, as a
/// Workload is. The verdict `forward` consumes the packet, any other one drops it by that name. Afterwards the copies
/// are merged. A consumer that counts may have a `ConsumerTally tally() const`, which is reported.
template <typename W>
concept Consumer = handoff::PacketWork<W> && std::copyable<W> && requires(W work, const W other) {
  { work.merge(other) } -> std::same_as<void>;
};

/// Returns what `work` counted, if it counts.
template <typename W>
[[nodiscard]] std::optional<ConsumerTally> consumer_tally(const W& work) {
  if constexpr (requires {
                  { work.tally() } -> std::convertible_to<ConsumerTally>;
                }) {
    return work.tally();
  } else {
    return std::nullopt;
  }
}

}  // namespace warpline::ingest
