// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture_sources.h"

#include <algorithm>

namespace warpline::capture {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;  // of all rings
constexpr std::size_t kLargestRing = std::size_t{4} << 20;
constexpr std::size_t kSmallestRing = std::size_t{256} << 10;

}  // namespace

Result<CaptureSources> CaptureSources::make(std::uint32_t count, std::uint32_t one_in, std::uint32_t snaplen,
                                            const PacketFilter& filter) {
  const std::size_t memory = std::clamp(kMemory / std::max(count, 1U), kSmallestRing, kLargestRing);
  WARPLINE_TRY(CaptureRings rings, CaptureRings::make(count, RingShape::within(memory, snaplen)));
  CaptureSources made(std::move(rings));
  for (std::uint32_t i = 0; i < count; ++i) {
    made.sources_.push_back(std::make_unique<CaptureSource>(one_in, filter, made.rings_.input(i), made.rings_.shape()));
  }
  return made;
}

SourceTotals CaptureSources::totals() const {
  SourceTotals totals;
  for (const auto& source : sources_) {
    totals.filtered += source->filtered();
    for (std::size_t i = 0; i < kVerdicts; ++i) totals.left_out[i] += source->left_out().get(static_cast<Verdict>(i));
  }
  return totals;
}

}  // namespace warpline::capture
