// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/kinds.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/vlan.h"
#include "warpline/workload/workload.h"

namespace warpline::workload {

/// Drops runts and giants, and leaves all other frames to `Work`. One comparison for a frame without tags.
///
/// A frame may hold an Ethernet header, up to two VLAN tags and `mtu` bytes; its FCS is not part of it.
template <typename Work>
class FrameLimits {
 public:
  static constexpr WorkloadKind kKind = Work::kKind;
  static constexpr bool kStateless = Work::kStateless;
  static constexpr WorkloadTraits kTraits = [] {
    WorkloadTraits traits = kTraitsOf<Work>;
    if (traits.access < FrameAccess::headers) traits.access = FrameAccess::headers;
    return traits;
  }();

  /// `mtu`: bytes of layer-3 packet.
  FrameLimits(Work work, std::uint16_t mtu) : work_(work), mtu_(mtu) {}

  WARPLINE_HD Verdict operator()(FrameRef frame) {
    // A runt's difference wraps around to something huge.
    if (frame.length - packet::EthernetView::kHeaderLength > mtu_) {
      const Verdict verdict = judge(frame);
      if (verdict != Verdict::forward) return verdict;
    }
    return work_(frame);
  }

  void merge(const FrameLimits& other) { work_.merge(other.work_); }
  [[nodiscard]] const Work& work() const { return work_; }

 private:
  [[nodiscard]] WARPLINE_HD Verdict judge(FrameRef frame) const {
    if (frame.length < packet::EthernetView::kHeaderLength) return Verdict::runt;
    std::uint32_t header = packet::EthernetView::kHeaderLength;
    std::uint8_t type[2];
    for (std::uint8_t tags = 0; tags < packet::kMaxVlanTags; ++tags) {
      if (!packet::gather(frame, header - sizeof(type), sizeof(type), type) ||
          !packet::is_vlan(packet::load_be16(type)))
        break;
      header += packet::VlanView::kHeaderLength;
    }
    return frame.length > header + mtu_ ? Verdict::giant : Verdict::forward;
  }

  Work work_;
  std::uint32_t mtu_;
};

}  // namespace warpline::workload
