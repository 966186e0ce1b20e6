// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/capture/capture_source.h"
#include "warpline/capture/capture_totals.h"
#include "warpline/capture/packet_filter.h"
#include "warpline/capture/rings/capture_rings.h"

namespace warpline::capture {

/// CaptureSources are the sources of a capture and their rings. Control thread.
class CaptureSources {
 public:
  /// Makes `count` sources; see CaptureSource. Environment error: there is no memory for their rings.
  [[nodiscard]] static Result<CaptureSources> make(std::uint32_t count, std::uint32_t one_in, std::uint32_t snaplen,
                                                   const PacketFilter& filter);

  [[nodiscard]] std::span<const std::unique_ptr<CaptureSource>> all() const { return sources_; }
  [[nodiscard]] const CaptureRings& rings() const { return rings_; }
  /// Returns what all of them counted.
  [[nodiscard]] SourceTotals totals() const;

 private:
  explicit CaptureSources(CaptureRings rings) : rings_(std::move(rings)) {}

  CaptureRings rings_;
  std::vector<std::unique_ptr<CaptureSource>> sources_;
};

}  // namespace warpline::capture
