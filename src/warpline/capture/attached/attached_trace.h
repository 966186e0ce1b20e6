// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/verdict.h"
#include "warpline/capture/attached/attached_rings.h"
#include "warpline/capture/packet_times.h"
#include "warpline/capture/rings/capture_ring.h"

namespace warpline::capture {

/// A packet of another process, and its way.
struct TracedPacket {
  std::string port;          ///< that received it
  std::uint16_t queue = 0;   ///< of the port
  std::uint32_t length = 0;  ///< bytes without FCS
  Verdict verdict = Verdict::forward;
  PacketTimes times{};
};

/// An AttachedTrace reads the ways of packets of another process. One thread.
class AttachedTrace {
 public:
  /// Attaches to the process that listens at `socket`, for one packet of each `one_in`th burst. Errors are those of
  /// AttachedRings::attach().
  [[nodiscard]] static Result<AttachedTrace> open(const std::string& socket, std::uint32_t one_in);

  /// Returns the next packet that waits, of the thread that has any.
  [[nodiscard]] std::optional<TracedPacket> next();

  [[nodiscard]] AttachedRings& rings() { return rings_; }

 private:
  explicit AttachedTrace(AttachedRings rings);

  AttachedRings rings_;
  std::vector<CaptureRingOutput> outputs_;
};

}  // namespace warpline::capture
