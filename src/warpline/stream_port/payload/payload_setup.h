// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/stream/payload/payload_lane.h"
#include "warpline/stream_port/payload/payload_stage.h"
#include "warpline/stream_port/pooled_port.h"

namespace warpline::stream_port {

/// Who puts payload into the frames of a SendPort.
struct PayloadSetup {
  /// Makes the lane of a queue, of that shape. Unset: the queue's own thread reads it from a source.
  std::function<Result<std::unique_ptr<stream::PayloadLane>>(const stream::PayloadShape& shape, std::uint16_t queue)>
      make{};
  std::uint64_t ring_bytes = 8 << 20;  ///< as of stream::PayloadShape
  int gpu = -1;                        ///< that writes into frames where they are sent from; negative: none does
  Nanos patience{5'000'000'000};       ///< as of PayloadStage

  /// Returns what a queue may have in the lane's hands.
  [[nodiscard]] LentFrames frames() const { return {make ? PayloadStage::kInHand : 0, gpu}; }
};

}  // namespace warpline::stream_port
