// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/kinds.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"
#include "warpline/workload/workload.h"

namespace warpline::workload {

/// Reads every header and verifies every checksum: of IPv4, UDP, TCP, ICMP and ICMPv6. Forwards a sound frame
/// unchanged, so with the checksums that it came with, and drops any other by the name of what is wrong with it.
struct ChecksumVerify {
  static constexpr WorkloadKind kKind = WorkloadKind::checksum;
  static constexpr bool kStateless = true;
  static constexpr WorkloadTraits kTraits{.effect = FrameEffect::unchanged};

  WARPLINE_HD Verdict operator()(FrameRef frame) const { return packet::verify_checksums(frame, packet::parse(frame)); }
  void merge(const ChecksumVerify& /*other*/) {}
};

}  // namespace warpline::workload
