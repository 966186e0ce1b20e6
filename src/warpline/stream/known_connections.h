// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warpline::stream {

/// `KnownConnections` is what several receivers behind one address, as those of a port's queues are, know of each
/// other's connections. A device may bring a segment to another receiver than that of its connection, as the kernel
/// does where net_af_packet's ring is full: who does not know it drops it, but must not reset it. It is a sketch: a
/// connection that there is counts as known, one that there is not only seldom. Any thread makes any call.
class KnownConnections {
 public:
  /// `hash`: of the connection's ends, the same at all receivers.
  void add(std::uint64_t hash) { place(hash).fetch_add(1, std::memory_order_relaxed); }
  /// Takes one back that was added.
  void remove(std::uint64_t hash) { place(hash).fetch_sub(1, std::memory_order_relaxed); }
  /// Whether a receiver may have it beside the caller, who has added it `own` times: always true if one does.
  [[nodiscard]] bool may_know(std::uint64_t hash, std::uint32_t own = 0) {
    return place(hash).load(std::memory_order_relaxed) > own;
  }

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 16;

  [[nodiscard]] std::atomic<std::uint32_t>& place(std::uint64_t hash) { return counts_[hash & (kPlaces - 1)]; }

  std::array<std::atomic<std::uint32_t>, kPlaces> counts_{};
};

}  // namespace warpline::stream
