// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/base/mpsc_ring.h"

namespace warpline::stream_port {

/// Takes frames from the queue that the device brought them to, to the queue whose connection they are of. Our ports
/// say which that is: each queue has a part of them. So it does not matter how the device chooses queues.
class FrameExchange {
 public:
  /// Frames that wait for a queue, at most.
  static constexpr std::uint32_t kRoom = 1024;

  /// For so many queues, whose ports are those from `first_port` on.
  FrameExchange(std::uint16_t queues, std::uint16_t first_port)
      : first_port_(first_port), ports_((0x10000U - first_port) / queues) {
    for (std::uint16_t i = 0; i < queues; ++i) rings_.push_back(std::make_unique<MpscRing<rte_mbuf*>>(kRoom));
  }
  FrameExchange(const FrameExchange&) = delete;
  FrameExchange& operator=(const FrameExchange&) = delete;

  [[nodiscard]] std::size_t queues() const { return rings_.size(); }
  /// Returns the first port of a queue, which has ports() of them.
  [[nodiscard]] std::uint16_t first_port(std::uint16_t queue) const {
    return static_cast<std::uint16_t>(first_port_ + queue * ports_);
  }
  [[nodiscard]] std::uint32_t ports() const { return ports_; }
  /// Returns the queue that has that port; `otherwise` if none has.
  [[nodiscard]] std::uint16_t owner(std::uint16_t port, std::uint16_t otherwise) const {
    const std::size_t queue = port < first_port_ ? rings_.size() : (port - first_port_) / ports_;
    return queue < rings_.size() ? static_cast<std::uint16_t>(queue) : otherwise;
  }

  /// Hands a frame to a queue. False if as many wait there already. Any queue's thread.
  [[nodiscard]] bool give(std::uint16_t queue, rte_mbuf* mbuf) { return rings_[queue]->push(mbuf); }
  /// Returns the next frame for a queue, which is its caller's; null if there is none. By that queue's thread.
  [[nodiscard]] rte_mbuf* take(std::uint16_t queue) {
    rte_mbuf* mbuf = nullptr;
    return rings_[queue]->pop(mbuf) ? mbuf : nullptr;
  }

 private:
  std::uint32_t first_port_;
  std::uint32_t ports_;  ///< of each queue
  std::vector<std::unique_ptr<MpscRing<rte_mbuf*>>> rings_;
};

}  // namespace warpline::stream_port
