// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace warpline::memory {

/// Decides which transmit queues an RX queue should take its buffers back from, by where its packets leave and by how
/// many of those came back. Pure: no clock, no DPDK. Owner: the lcore that polls the RX queue.
///
/// The first packets choose the first mapping, as in the l3fwd of DPDK's direct-rearm proposal. From then on it judges
/// a window of packets at a time: a mapping stays while most packets leave by it and come back through it; one that
/// does not pay is left, and tried again after a pause that doubles each time it fails.
class RecycleWatch {
 public:
  RecycleWatch() = default;
  /// `for_good`: the first mapping stays, whatever comes.
  explicit RecycleWatch(bool for_good) : for_good_(for_good) {}

  static constexpr std::size_t kMostQueues = 64;  ///< transmit queues that packets may leave by
  static constexpr std::size_t kMostMapped = 2;
  static constexpr std::uint32_t kWindow = 8192;       ///< packets
  static constexpr std::uint32_t kLongestPause = 256;  ///< windows

  /// Transmit queues to take buffers from, the one with most packets first.
  struct Mapping {
    std::array<std::uint8_t, kMostMapped> tx{};
    std::uint8_t count = 0;

    [[nodiscard]] bool has(std::uint8_t queue) const {
      return (count > 0 && tx[0] == queue) || (count > 1 && tx[1] == queue);
    }
    bool operator==(const Mapping& other) const {
      return count == other.count && (count < 1 || tx[0] == other.tx[0]) && (count < 2 || tx[1] == other.tx[1]);
    }
  };

  /// `packets` of a burst were handed to transmit queue `tx` < kMostQueues. True: decide() is due.
  [[nodiscard]] bool left(std::uint8_t tx, std::uint32_t packets) {
    left_[tx] += packets;
    seen_ += packets;
    return seen_ >= window_;
  }
  /// So many buffers came back from the mapped queues.
  void came_back(std::uint32_t mbufs) { came_back_ += mbufs; }

  /// Judges the window that has passed and begins the next. What it returns is what came_back() will be about.
  [[nodiscard]] const Mapping& decide();
  /// What decide() returned cannot be, or not all of it, or no longer: `actual` is what is mapped instead. Nothing
  /// counts as a mapping that did not pay.
  void set_actual(const Mapping& actual);

  [[nodiscard]] const Mapping& mapped() const { return mapped_; }

 private:
  [[nodiscard]] Mapping wanted() const;
  void back_off();
  void begin_window();

  bool for_good_ = false;
  std::uint32_t seen_ = 0;
  std::uint32_t window_ = 1;  ///< the first burst decides
  std::uint32_t came_back_ = 0;
  std::uint32_t pause_ = 0;       ///< windows before the next try
  std::uint32_t next_pause_ = 1;  ///< how many the next pause has
  Mapping mapped_;
  std::array<std::uint32_t, kMostQueues> left_{};
};

}  // namespace warpline::memory
