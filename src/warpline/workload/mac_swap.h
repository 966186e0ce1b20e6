// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/kinds.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/workload/workload.h"

namespace warpline::workload {

/// Sends each frame back to where it came from: exchanges its MAC addresses in place.
struct MacSwap {
  static constexpr WorkloadKind kKind = WorkloadKind::mac_swap;
  static constexpr bool kStateless = true;
  static constexpr WorkloadTraits kTraits{.access = FrameAccess::headers, .effect = FrameEffect::macs_swapped};

  WARPLINE_HD Verdict operator()(FrameRef frame) const {
    if (frame.head_length() < packet::EthernetView::kHeaderLength) return swap_across_segments(frame);
    packet::swap_macs(frame.data());
    return Verdict::forward;
  }
  void merge(const MacSwap& /*other*/) {}

 private:
  static WARPLINE_HD Verdict swap_across_segments(FrameRef frame) {
    std::uint8_t header[packet::EthernetView::kHeaderLength];
    if (!packet::gather(frame, 0, sizeof(header), header)) return Verdict::runt;
    packet::swap_macs(header);
    packet::scatter(frame, 0, header, sizeof(header));
    return Verdict::forward;
  }
};

}  // namespace warpline::workload
