// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <rte_mbuf.h>

namespace warpline::port {

/// `SendLimits` is how long the frames are that a driver sends whole. Longer ones some drivers of DPDK cut, or free as
/// if they had been sent.
struct SendLimits {
  std::uint32_t frame = UINT32_MAX;    ///< bytes of a frame
  std::uint32_t chained = UINT32_MAX;  ///< bytes of a frame in several buffers; 0: it sends none

  [[nodiscard]] bool any() const { return frame != UINT32_MAX || chained != UINT32_MAX; }
  [[nodiscard]] bool allow(const rte_mbuf* mbuf) const {
    return mbuf->pkt_len <= frame && (mbuf->nb_segs == 1 || mbuf->pkt_len <= chained);
  }
};

/// Returns the limits of a started or configured ethdev; none for drivers that check by themselves.
[[nodiscard]] SendLimits send_limits(std::uint16_t ethdev);

}  // namespace warpline::port
