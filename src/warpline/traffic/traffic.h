// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/traffic/frame_pattern.h"
#include "warpline/traffic/traffic_settings.h"

namespace warpline::traffic {

inline constexpr std::uint32_t kMaxFlows = 1 << 20;

/// What the generator sends and the checker expects: sizes, flows, headers and payload. Immutable, so any number of
/// threads may use it; copies share the tables. Takes 64 bytes a flow and size.
class TrafficPlan : public FramePattern {
 public:
  /// Usage error: a size that is none, too small for the addresses' kind or too large; no flow or more than kMaxFlows;
  /// addresses of two kinds.
  [[nodiscard]] static Result<TrafficPlan> make(const TrafficSettings& settings, std::uint64_t seed);

 private:
  /// What the tables of FramePattern point into.
  struct Owned {
    std::vector<HeaderTemplate> templates;
    std::vector<std::uint8_t> pattern;
    std::vector<std::uint32_t> sums;
  };

  TrafficPlan() = default;

  [[nodiscard]] Result<void> read_sizes(const TrafficSettings& settings);
  [[nodiscard]] std::vector<HeaderTemplate> make_templates(const TrafficSettings& settings) const;
  static void make_pattern(std::uint64_t seed, Owned& owned);

  std::shared_ptr<const Owned> owned_;
};

}  // namespace warpline::traffic
